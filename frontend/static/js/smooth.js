// Smoothing that never leaves the data's range: every point is a weighted mean of values that were there.
// The half-life is a power of two of the axis, so that a growing chart keeps its smoothed past.
export function halfLife(xs, share) {
  const span = xs.length ? xs[xs.length - 1] - xs[0] : 0;
  return span > 0 && share > 0 ? 2 ** Math.round(Math.log2(span * share)) : 0;
}

export function smooth(xs, ys, half) {
  if (!half) return ys;
  let mean = null;
  let before = 0;
  return ys.map((y, index) => {
    if (y === null || y === undefined) return null;
    const keep = mean === null ? 0 : 2 ** (-(xs[index] - before) / half);
    mean = mean === null ? y : mean * keep + y * (1 - keep);
    before = xs[index];
    return mean;
  });
}
