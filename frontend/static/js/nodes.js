// The nodes' page follows heartbeats and the queue.
import { fetchParts, swapParts } from "./parts.js";
import { subscribe } from "./stream.js";
import { throttled } from "./throttle.js";
import { showTimes } from "./times.js";

const refresh = throttled(async () => {
  if (document.hidden) return;
  const next = await fetchParts(location.href);
  if (!next) return;
  swapParts(document, next, "data-part");
  showTimes(document);
}, 3000);

subscribe(refresh);
setInterval(refresh, 10000);
