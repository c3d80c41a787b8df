// The tokens of an answer: the numbers of the one that is pointed at or focused stand below; arrow keys move.
for (const group of document.querySelectorAll("[data-tokens]")) {
  const tokens = [...group.children];
  const readout = group.nextElementSibling;
  const tell = (token) => readout.textContent = `“${token.textContent}” ${token.dataset.said}`;
  const choose = (token) => {
    group.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    token.tabIndex = 0;
    token.focus();
  };
  for (const token of tokens) token.tabIndex = -1;
  if (tokens.length) tokens[0].tabIndex = 0;
  group.addEventListener("pointerover", ({ target }) => target !== group && tell(target));
  group.addEventListener("focusin", ({ target }) => tell(target));
  group.addEventListener("click", ({ target }) => target !== group && choose(target));
  group.addEventListener("keydown", (event) => {
    const place = tokens.indexOf(document.activeElement);
    const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tokens.length - 1 }[event.key];
    if (next === undefined || !tokens[next]) return;
    event.preventDefault();
    choose(tokens[next]);
  });
}
