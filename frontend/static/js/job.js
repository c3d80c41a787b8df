// A job's page: header, result, events and log follow the job.
import { Board } from "./chart-board.js";
import { fetchParts, swapParts } from "./parts.js";
import { subscribe } from "./stream.js";
import { throttled } from "./throttle.js";
import { showTimes } from "./times.js";

const jobId = Number(document.getElementById("head").dataset.run);
const place = document.querySelector(".board");
const board = place ? new Board(place) : null;

const refresh = throttled(async () => {
  if (document.hidden) return;
  const next = await fetchParts(location.href);
  if (!next) return;
  swapParts(document, next, "data-part");
  showTimes(document);
}, 1500);

subscribe((news) => {
  if (news && news.run !== jobId) return;
  board?.news();
  refresh();
});
