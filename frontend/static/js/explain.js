// An algorithm's objective and curves: asked for at every change of the form or the sizes, one question at a time.
import { draw } from "./chart.js";
import { shown } from "./numbers.js";
import { showSentences } from "./sentences.js";

const board = document.querySelector("[data-explain]");
const form = document.querySelector("form[data-explained]");
const sizes = board.querySelector("[data-sizes]");
const said = board.querySelector("[data-state]");
const charts = [...board.querySelectorAll("figure[data-chart]")];
const LATER = { starting: 500, away: 15_000 }; // ms until curves that did not come are asked for again
const written = {};
let figures = null;
let isAsking = false;
let hasChanged = false;
let timer = 0;

async function refresh() {
  clearTimeout(timer);
  if (isAsking) return void (hasChanged = true);
  isAsking = true;
  const answer = await ask();
  isAsking = false;
  if (hasChanged) {
    hasChanged = false;
    refresh();
  }
  if (answer) take(answer);
  else tell("The formula and the curves could not be brought up to date: the server gave no answer.");
}

async function ask() {
  const address = new URL(board.dataset.explain, location.href);
  try {
    if (form) {
      const data = new FormData(form);
      for (const [name, value] of new FormData(sizes)) data.set(name, value);
      return await read(await fetch(address, { method: "POST", body: data }));
    }
    for (const [name, value] of new FormData(sizes)) address.searchParams.set(name, value);
    return await read(await fetch(address));
  } catch {
    return null; // no network
  }
}

async function read(response) {
  return response.ok && !response.redirected ? response.json() : null;
}

function take(answer) {
  if (form) {
    showSentences(form, answer.errors, "error");
    showSentences(form, answer.notes, "note");
  }
  const isWrong = !("formula" in answer);
  board.toggleAttribute("data-stale", isWrong);
  if (isWrong) return tell("What is shown belongs to the last values that make an algorithm.");
  for (const name of ["formula", "other"]) {
    const place = document.querySelector(`[data-formula=${name}]`);
    if (place && answer[name] !== undefined && answer[name] !== written[name]) place.innerHTML = written[name] = answer[name]; // escaped by the server
  }
  tell(answer.sentence);
  if (answer.figures) show(answer.figures);
  else if (LATER[answer.state]) timer = setTimeout(refresh, LATER[answer.state]);
}

function tell(sentence) {
  said.textContent = sentence;
  said.hidden = !sentence;
}

// Draw what has changed: of most edits that is one chart of three.
function show(next, all = false) {
  const changed = charts.filter(({ dataset: { chart } }) => all || JSON.stringify(figures?.[chart]) !== JSON.stringify(next[chart]));
  const waiting = new Set(changed);
  figures = next;
  for (const chart of changed) {
    const figure = figures[chart.dataset.chart];
    chart.classList.remove("waiting");
    legend(chart.querySelector(".legend"), figure);
    const table = chart.querySelector(".chart-table");
    if (!table.hidden) fill(table, figure);
    draw(chart.querySelector(".plot"), figure, { drawn: () => waiting.delete(chart) && !waiting.size && drawn() });
  }
  if (!changed.length) drawn();
}

function drawn() {
  board.dispatchEvent(new Event("vantage:drawn"));
}

function legend(place, figure) {
  place.replaceChildren(...figure.data.map((trace) => {
    const entry = Object.assign(document.createElement("span"), { className: "entry" });
    const swatch = Object.assign(document.createElement("span"), { className: `swatch ${trace.line.color} ${trace.line.dash}` });
    const label = Object.assign(document.createElement("span"), { className: "label", textContent: trace.meta.label, title: trace.meta.label });
    entry.append(swatch, label);
    return entry;
  }));
}

function fill(place, figure) {
  const table = Object.assign(document.createElement("table"), { className: "data" });
  const head = table.createTHead().insertRow();
  for (const title of figure.table.head) {
    head.append(Object.assign(document.createElement("th"), { scope: "col", className: "num", textContent: title }));
  }
  const body = table.createTBody();
  for (const values of figure.table.rows) {
    const row = body.insertRow();
    for (const value of values) Object.assign(row.insertCell(), { className: "num", textContent: shown(value) });
  }
  place.replaceChildren(table);
}

for (const chart of charts) {
  const button = chart.querySelector("[data-act=table]");
  button.addEventListener("click", () => {
    const table = chart.querySelector(".chart-table");
    table.hidden = !table.hidden;
    button.setAttribute("aria-expanded", String(!table.hidden));
    if (!table.hidden && figures) fill(table, figures[chart.dataset.chart]);
  });
}
sizes.addEventListener("submit", (event) => event.preventDefault());
sizes.addEventListener("input", refresh);
form?.addEventListener("input", refresh);
document.addEventListener("vantage:theme", () => figures && show(figures, true));
refresh();
