// A long menu gets a field that leaves only the entries holding what is typed; Enter takes the first of them.
const FEW = 8;

function searchable(select) {
  if (select.options.length <= FEW || select.dataset.searched) return;
  select.dataset.searched = "";
  const field = Object.assign(document.createElement("input"), { type: "search", className: "menu-search", placeholder: "Search", autocomplete: "off" });
  field.setAttribute("aria-label", `Search in: ${select.labels[0]?.textContent.trim() ?? "this menu"}`);
  field.setAttribute("aria-controls", select.id);
  field.addEventListener("input", (event) => {
    event.stopPropagation(); // nothing of the form has changed
    narrow(select, field.value);
  });
  field.addEventListener("change", (event) => event.stopPropagation());
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // it would submit the form
    const first = [...select.options].find((option) => !option.hidden);
    if (!first) return;
    select.value = first.value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  });
  select.before(field);
}

function narrow(select, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  for (const option of select.options) {
    const name = `${option.textContent} ${option.value}`.toLowerCase();
    option.hidden = !words.every((word) => name.includes(word));
  }
}

function search() {
  for (const select of document.querySelectorAll("select[data-search]")) searchable(select);
}

document.addEventListener("htmx:after:swap", search);
search();
