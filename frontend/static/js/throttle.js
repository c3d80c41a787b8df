// Act at once, then at most every so often; the last call is never lost.
export function throttled(act, every) {
  let last = -Infinity;
  let timer = 0;
  return () => {
    if (timer) return;
    const wait = last + every - performance.now();
    const go = () => {
      timer = 0;
      last = performance.now();
      act();
    };
    if (wait <= 0) go();
    else timer = setTimeout(go, wait);
  };
}
