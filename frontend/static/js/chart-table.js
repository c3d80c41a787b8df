// The table behind a chart: newest first, the values that the lines show.
import { shown } from "./numbers.js";

const MOST_ROWS = 200;

export function fillTable(place, figure) {
  const current = figure.data.filter((trace) => trace.meta.role === "line");
  const lines = [...current, ...figure.data.filter((trace) => trace.meta.role === "superseded")];
  const marks = figure.data.filter((trace) => trace.meta.role === "nonfinite");
  const rows = new Map();
  lines.forEach((trace, column) => trace.x.forEach((x, n) => cellOf(rows, x)[column] = shown(trace.y[n], trace.meta.unit)));
  for (const trace of marks) {
    const column = current.findIndex((line) => line.meta.key === trace.meta.key);
    trace.x.forEach((x, n) => cellOf(rows, x)[column] = [rows.get(x)[column], trace.text[n]].filter((t) => t && t !== "–").join(", "));
  }
  const steps = [...rows.keys()].sort((a, b) => b - a);
  const table = document.createElement("table");
  table.className = "data";
  table.createCaption().textContent = captionOf(steps.length);
  const head = table.createTHead().insertRow();
  for (const title of [figure.layout.xaxis.title, ...lines.map(titleOf)]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.className = "num";
    cell.textContent = title;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const x of steps.slice(0, MOST_ROWS)) fillRow(body.insertRow(), [shown(x), ...lines.map((_, n) => rows.get(x)[n] ?? "")]);
  place.replaceChildren(table);
}

function titleOf({ meta }) {
  return meta.role === "superseded" ? `${meta.label} (superseded)` : meta.label;
}

function captionOf(count) {
  return count > MOST_ROWS ? `The newest ${MOST_ROWS} of ${count} points; the CSV holds all of them.` : `${count} points.`;
}

function cellOf(rows, x) {
  if (!rows.has(x)) rows.set(x, []);
  return rows.get(x);
}

function fillRow(row, texts) {
  for (const text of texts) {
    const cell = row.insertCell();
    cell.className = "num";
    cell.textContent = text;
  }
}
