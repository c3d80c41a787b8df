// One event stream per browser, however many pages are open: this worker holds it and tells every page.
const AGAIN_AFTER = 3000;
const ports = new Set();
let source = null;
let state = "connecting";

function tell(message) {
  for (const port of ports) port.postMessage(message);
}

function open() {
  if (source) return;
  source = new EventSource("/stream");
  source.onopen = () => become("open");
  source.onmessage = (event) => tell({ kind: "news", news: JSON.parse(event.data) });
  source.onerror = () => {
    become("down");
    if (source.readyState !== EventSource.CLOSED) return; // it tries again by itself
    close();
    setTimeout(() => ports.size && open(), AGAIN_AFTER);
  };
}

function become(next) {
  state = next;
  tell({ kind: next });
}

function close() {
  source?.close();
  source = null;
}

function leave(port) {
  ports.delete(port);
  if (!ports.size) close();
}

self.onconnect = ({ ports: [port] }) => {
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data === "leave") leave(port);
  };
  port.postMessage({ kind: state });
  open();
};
