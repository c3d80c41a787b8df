// The form for a new run: refusals appear beside their fields while one types; a preset fills its parts in place.
const form = document.querySelector("form.launch");
const summary = document.getElementById("summary");
const WAIT = 350;
let timer = 0;
let asked = 0;

async function check() {
  const mine = ++asked;
  const response = await fetch(form.dataset.check, { method: "POST", body: new FormData(form) });
  if (!response.ok || response.redirected || mine !== asked) return;
  const answer = await response.json();
  summary.innerHTML = answer.summary; // escaped by the server
  delete summary.dataset.stale;
  showSentences(answer.errors, "error");
  showSentences(answer.notes, "note");
  markSections(answer.errors);
}

function showSentences(byId, look) {
  for (const old of form.querySelectorAll(`p.${look}`)) {
    const id = old.id.replace(/-(error|note)$/, "");
    if (!old.closest("#summary") && !byId[id]) remove(old, id, look);
  }
  for (const [id, sentences] of Object.entries(byId)) {
    const control = document.getElementById(id);
    if (control) sentence(control, `${id}-${look}`, look).textContent = sentences.join(" ");
  }
}

function sentence(control, id, look) {
  const known = document.getElementById(id);
  if (known) return known;
  const made = Object.assign(document.createElement("p"), { id, className: look });
  const field = control.closest(".field");
  if (field) field.append(made);
  else (control.matches("select") ? control : control.querySelector(":scope > legend") ?? control.firstElementChild).after(made);
  if (look === "error") field?.classList.add("invalid");
  if (look === "error" && control.matches("input, select, textarea")) control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", `${control.getAttribute("aria-describedby") ?? ""} ${id}`.trim());
  return made;
}

function remove(old, id, look) {
  const control = document.getElementById(id);
  if (look === "error") {
    old.closest(".field")?.classList.remove("invalid");
    control?.removeAttribute("aria-invalid");
  }
  const others = (control?.getAttribute("aria-describedby") ?? "").split(" ").filter((word) => word && word !== old.id);
  if (others.length) control?.setAttribute("aria-describedby", others.join(" "));
  else control?.removeAttribute("aria-describedby");
  old.remove();
}

function markSections(errors) {
  const ids = Object.keys(errors);
  for (const link of form.querySelectorAll(".contents a")) {
    const section = document.querySelector(link.hash);
    link.classList.toggle("wrong", ids.some((id) => section.querySelector(`#${CSS.escape(id)}`)));
  }
}

function checkSoon() {
  clearTimeout(timer);
  summary.dataset.stale = "";
  timer = setTimeout(check, WAIT);
}

// A button that changes the form's shape (a preset, another row) posts the form and puts the answer in its place.
async function reshape(button) {
  const data = new FormData(form, button);
  button.setAttribute("aria-busy", "true");
  const response = await fetch(form.action, { method: "POST", body: data });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.querySelector(".fields-column");
  if (!fresh) return HTMLFormElement.prototype.submit.call(form);
  form.querySelector(".fields-column").replaceWith(fresh);
  document.dispatchEvent(new Event("htmx:after:swap")); // variants.js shows the chosen variants again
  document.getElementById(button.id || "preset")?.focus();
  check();
}

form.addEventListener("submit", (event) => {
  if (!event.submitter?.matches("[name='use_preset'], [name='form.add'], [name='form.remove']")) return;
  event.preventDefault();
  reshape(event.submitter);
});
form.addEventListener("input", checkSoon);
form.addEventListener("change", ({ target }) => {
  if (target.id === "preset") reshape(form.querySelector("[data-use-preset]"));
  else checkSoon();
});
for (const button of form.querySelectorAll("[data-use-preset]")) button.hidden = true;
