// Show the fields of the chosen variant and of the parts that are switched on; without this all stay visible.

function use(part, used) {
  part.hidden = !used;
  part.disabled = !used;
}

function refresh(root) {
  for (const group of root.querySelectorAll("[data-variants]")) {
    const chosen = group.querySelector(":scope > [data-choice]").value;
    for (const branch of group.querySelectorAll(":scope > [data-variant]")) {
      use(branch, branch.dataset.variant === chosen);
    }
  }
  for (const group of root.querySelectorAll("[data-optional]")) {
    const on = group.querySelector(":scope > legend [data-switch]").checked;
    use(group.querySelector(":scope > [data-body]"), on);
  }
  for (const legend of root.querySelectorAll("legend.no-script")) legend.hidden = true;
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-choice], [data-switch]")) refresh(document);
});
for (const swapped of ["htmx:afterSwap", "htmx:after:swap"]) {
  document.addEventListener(swapped, () => refresh(document));
}
refresh(document);
