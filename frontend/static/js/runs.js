// The table of runs: rows follow the runs, choosing many, filters that need no button.
import { fetchParts, swap } from "./parts.js";
import { subscribe } from "./stream.js";
import { throttled } from "./throttle.js";
import { showTimes } from "./times.js";

const place = document.querySelector("[data-live-table]");

const refresh = throttled(async () => {
  if (document.hidden) return;
  const next = await fetchParts(location.href, { fragment: "table" });
  if (!next) return;
  const rows = place.querySelectorAll("tr[data-run]");
  const fresh = next.querySelectorAll("tr[data-run]");
  if (ids(rows) === ids(fresh)) rows.forEach((row, n) => freshen(row, fresh[n]));
  else if (!chosen().length) place.replaceChildren(...next.body.childNodes);
  showTimes(place);
  showChosen();
}, 1500);

function ids(rows) {
  return [...rows].map((row) => row.dataset.run).join();
}

function freshen(row, next) {
  [...row.cells].forEach((cell, n) => {
    if (!cell.matches(".pick")) swap(cell, next.cells[n]);
  });
}

function chosen() {
  return [...place.querySelectorAll("tbody .pick input:checked")];
}

function showChosen() {
  const bulk = place.querySelector("[data-bulk]");
  if (!bulk) return;
  const count = chosen().length;
  bulk.hidden = count === 0;
  bulk.querySelector("[data-chosen]").textContent = `${count} chosen`;
}

place.addEventListener("change", ({ target }) => {
  if (target.matches("[data-pick-all]"))
    for (const box of place.querySelectorAll("tbody .pick input")) box.checked = target.checked;
  showChosen();
});
document.querySelector("[data-filter] select").addEventListener("change", ({ target }) => target.form.requestSubmit());
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, textarea, select")) return;
  event.preventDefault();
  document.getElementById("q").focus();
});
subscribe(refresh);
