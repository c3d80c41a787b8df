// A run's page: charts, header and lists follow the run.
import { Board } from "./chart-board.js";
import { fetchParts, swap, swapParts } from "./parts.js";
import { subscribe } from "./stream.js";
import { throttled } from "./throttle.js";
import { showTimes } from "./times.js";

const head = document.getElementById("head");
const runId = Number(head.dataset.run);
const boardPlace = document.querySelector(".board");
const board = boardPlace ? new Board(boardPlace) : null;
const lists = document.querySelectorAll("[data-refresh]");

const refreshHead = throttled(async () => {
  const next = await fetchParts(head.dataset.head);
  if (!next) return;
  swapParts(head, next, "data-part");
  showTimes(head);
}, 1000);

const refreshLists = throttled(async () => {
  const next = await fetchParts(location.href);
  const fresh = next?.querySelectorAll("[data-refresh]") ?? [];
  lists.forEach((part, index) => {
    if (!fresh[index]) return;
    const logs = [...part.querySelectorAll("[data-log]")].map((log) => log.scrollHeight - log.scrollTop - log.clientHeight < 8);
    if (swap(part, fresh[index])) keepEnds(part, logs);
    showTimes(part);
  });
}, 2000);

// A log that stood at its end stays at its end.
function keepEnds(part, atEnd) {
  part.querySelectorAll("[data-log]").forEach((log, n) => {
    if (atEnd[n] ?? true) log.scrollTop = log.scrollHeight;
  });
}

function setOption(name, value) {
  const address = new URL(location.href);
  if (value) address.searchParams.set(name, value);
  else address.searchParams.delete(name);
  history.replaceState(null, "", address);
}

function linkFiles() {
  const lost = board.superseded ? "&superseded=1" : "";
  for (const link of document.querySelectorAll("a[data-csv]")) link.search = `?x=${board.axis}${lost}`;
}

document.querySelector("[data-options]")?.addEventListener("change", ({ target }) => {
  setOption(target.name, target.type === "checkbox" && !target.checked ? "" : target.value);
  if (target.name === "x") board.setAxis(target.value);
  else if (target.name === "superseded") board.setSuperseded(target.checked);
  else board.setSmoothing(Number(target.value));
  linkFiles();
});
document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-submit]")) target.form.requestSubmit();
});

// On a narrow screen the tabs scroll: the one that is open is brought into view.
function showOpenTab() {
  const open = head.querySelector("nav.tabs [aria-current]");
  const bar = open?.parentElement;
  if (bar) bar.scrollLeft += open.getBoundingClientRect().right - bar.getBoundingClientRect().right;
}

showOpenTab();
keepEnds(document, []);
if (board) linkFiles();
let told = {};

// News says how far the journal is stored; without any (a reconnection, a page that was hidden) everything is asked for.
subscribe((news) => {
  if (news && news.run !== runId) return;
  const now = news ? { status: news.status, ...news.cursor } : {};
  const moved = (part) => !news || now.attempt !== told.attempt || now[part] !== told[part];
  if (moved("metrics")) board?.news();
  if (document.hidden) return;
  refreshHead();
  if (lists.length && (moved("events") || moved("status") || head.dataset.tab === "run_log")) refreshLists();
  told = now;
});
