// News for a page: through the browser's one stream; by a stream of its own where SharedWorker is missing;
// by asking every few seconds while no stream is to be had. What a page missed it reads from its own cursors.
const ASK_EVERY = 5000;
const listeners = new Set();
let port = null;
let own = null;
let asking = 0;

export function subscribe(listener) {
  listeners.add(listener);
  if (!port && !own) connect();
}

function connect() {
  if (typeof SharedWorker === "undefined") return connectAlone();
  const worker = new SharedWorker(new URL("./stream-worker.js", import.meta.url), { name: "vantage-stream" });
  worker.onerror = () => port && !own && connectAlone();
  port = worker.port;
  port.onmessage = ({ data }) => hear(data);
}

function connectAlone() {
  port = null;
  own = new EventSource("/stream");
  own.onopen = () => hear({ kind: "open" });
  own.onerror = () => hear({ kind: "down" });
  own.onmessage = (event) => hear({ kind: "news", news: JSON.parse(event.data) });
}

function disconnect() {
  port?.postMessage("leave");
  own?.close();
  port = own = null;
}

function hear({ kind, news }) {
  if (kind === "news") return tell(news);
  clearInterval(asking);
  asking = kind === "down" ? setInterval(() => tell(null), ASK_EVERY) : 0;
  document.documentElement.toggleAttribute("data-offline", kind === "down");
  if (kind === "open") tell(null);
}

// null: something may have happened, look for yourself.
function tell(news) {
  for (const listener of listeners) listener(news);
}

addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => {
  if (event.persisted && listeners.size) connect();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) tell(null);
});
