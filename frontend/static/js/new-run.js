// The form for a new run: refusals appear beside their fields while one types; a preset fills its parts in place.
import { showSentences } from "./sentences.js";

const form = document.querySelector("form.launch");
const summary = document.getElementById("summary");
const WAIT = 350;
let timer = 0;
let asked = 0;

// Ask the server; null where it did not answer as it should: an error, a page for logging in, no network.
async function ask(address, data) {
  try {
    const response = await fetch(address, { method: "POST", body: data });
    return response.ok && !response.redirected ? await response.text() : null;
  } catch {
    return null;
  }
}

function complain(text) {
  delete summary.dataset.stale;
  const said = summary.querySelector(".not-answered") ?? Object.assign(document.createElement("p"), { className: "error not-answered" });
  said.textContent = text;
  summary.prepend(said);
}

async function check() {
  clearTimeout(timer);
  const mine = ++asked;
  const answered = await ask(form.dataset.check, new FormData(form));
  if (mine !== asked) return;
  if (answered === null) return complain("The form could not be checked: the server gave no answer. What stands below may be out of date; it is checked again with your next change.");
  const answer = JSON.parse(answered);
  summary.innerHTML = answer.summary; // escaped by the server
  delete summary.dataset.stale;
  showSentences(form, answer.errors, "error");
  showSentences(form, answer.notes, "note");
  markSections(answer.errors);
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
// Without an answer the form stays as it is: it is never submitted from here, for that would launch the run.
async function reshape(button) {
  clearTimeout(timer);
  asked++; // an answer to an earlier check is about a form that is going
  button.setAttribute("aria-busy", "true");
  const answered = await ask(form.action, new FormData(form, button));
  button.removeAttribute("aria-busy");
  const fresh = new DOMParser().parseFromString(answered ?? "", "text/html").querySelector(".fields-column");
  if (!fresh) return complain("The form could not be changed: the server gave no answer. All fields are as they were; try again.");
  form.querySelector(".fields-column").replaceWith(fresh);
  hideNeedless();
  document.dispatchEvent(new Event("htmx:after:swap")); // variants.js shows the chosen variants again
  document.getElementById(button.id || "preset")?.focus();
  check();
}

// The form's default button, which Enter presses, only checks; to launch or try the run one presses that button.
form.addEventListener("submit", (event) => {
  if (["launch", "try"].includes(event.submitter?.name)) return;
  event.preventDefault();
  if (event.submitter?.matches("[name='use_preset'], [name='form.add'], [name='form.remove']")) reshape(event.submitter);
  else check();
});
form.addEventListener("input", ({ target }) => {
  if (target.id !== "preset") checkSoon(); // a preset is followed by its change, which asks for the whole form
});
form.addEventListener("change", ({ target }) => {
  if (target.id === "preset") reshape(form.querySelector("[data-use-preset]"));
  else checkSoon();
});

// With scripts the choice of a preset fills in its parts at once.
function hideNeedless() {
  for (const button of form.querySelectorAll("[data-use-preset]")) button.hidden = true;
}

hideNeedless();
check(); // what deserves a word stands there from the beginning
