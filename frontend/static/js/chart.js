// The one module that draws: a figure of figures.py in, a Plotly chart out. At most one chart is drawn per frame.
import { palette } from "./palette.js";
import { halfLife, smooth } from "./smooth.js";
import { valueRange } from "./value-axis.js";

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';
const CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset+autosize", showTips: false };
const LARGEST = 1e300; // beyond it pixels overflow to NaN; the table keeps the value itself
const waiting = new Map();
let frame = 0;

export function draw(place, figure, options) {
  waiting.set(place, { figure, options });
  frame ||= requestAnimationFrame(drawNext);
}

function drawNext() {
  frame = 0;
  const [place, { figure, options }] = waiting.entries().next().value;
  waiting.delete(place);
  if (place.isConnected) {
    const { data, layout } = prepared(figure, options);
    window.Plotly.react(place, data, layout, CONFIG);
    options.drawn?.();
  }
  if (waiting.size) frame ||= requestAnimationFrame(drawNext);
}

export function prepared(figure, { smoothing = 0, hidden = new Set(), range = null } = {}) {
  const colours = palette();
  const data = figure.data.filter((trace) => !hidden.has(trace.meta.key)).flatMap((trace) => looks(trace, smoothing));
  const made = { data: data.map(colours), layout: colours(dressed(figure.layout, range, valueRange(data))) };
  colours.done();
  return made;
}

function looks(whole, smoothing) {
  const trace = { ...whole, y: whole.y.map(drawable) };
  if (trace.meta.role !== "line") return [trace.meta.role === "superseded" ? { ...trace, ...dots(trace) } : trace];
  const line = { ...trace, hovertemplate: `%{y:.7~g}<extra>%{fullData.name}</extra>` };
  if (!trace.stackgroup && !trace.mode.includes("markers")) Object.assign(line, dots(trace));
  const half = trace.meta.smooth ? halfLife(trace.x, smoothing) : 0;
  if (!half) return [line];
  const even = { ...trace, uid: `${trace.uid}-smooth`, y: smooth(trace.x, trace.y, half), hoverinfo: "skip", mode: "lines" };
  return [{ ...line, opacity: 0.35, line: { ...line.line, width: 1 } }, even];
}

function drawable(value) {
  return typeof value === "number" ? Math.min(LARGEST, Math.max(-LARGEST, value)) : value;
}

// A value between two gaps has no line to stand on: give it a dot.
function dots({ x, y, line }) {
  const alone = y.map((value, n) => value !== null && (y[n - 1] ?? null) === null && (y[n + 1] ?? null) === null);
  if (!alone.includes(true)) return {};
  const color = line.color;
  return { mode: "lines+markers", marker: { size: x.map((_, n) => (alone[n] ? 5 : 0)), color, line: { width: 0 } } };
}

function dressed(layout, range, values) {
  const axis = { zeroline: false, ticks: "", linecolor: "hairline", gridcolor: "hairline", tickfont: { size: 11 }, exponentformat: "e" }; // superscripts need inline style
  return {
    uirevision: "kept",
    margin: { l: 48, r: 12, t: 8, b: 36 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: FONT, size: 11, color: "muted" },
    showlegend: false,
    hovermode: "x unified",
    hoverlabel: { bgcolor: "raised", bordercolor: "hairline", font: { family: FONT, size: 12, color: "ink" } },
    dragmode: "zoom",
    xaxis: {
      ...axis, showgrid: false, showline: true, nticks: 7, ...layout.xaxis,
      title: { text: layout.xaxis.title, font: { size: 11 }, standoff: 4 },
      ...(range ? { range, autorange: false } : {}),
    },
    yaxis: {
      ...axis, fixedrange: true, nticks: 6, automargin: true, ...layout.yaxis,
      ...(values && !layout.yaxis.range ? { range: values, autorange: false } : {}),
    },
    yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
  };
}

export function exportImage(figure, options, { title, format }) {
  const { data, layout } = prepared(figure, options);
  const colours = palette();
  const paper = colours("paper");
  colours.done();
  for (const trace of data) trace.showlegend = trace.meta.role === "line";
  const whole = {
    ...layout, paper_bgcolor: paper, plot_bgcolor: paper, showlegend: true, title: { text: escaped(title) },
    legend: { orientation: "h", y: -0.18 }, margin: { l: 60, r: 20, t: 56, b: 80 },
  };
  return window.Plotly.downloadImage({ data, layout: whole },
    { format, width: 960, height: 540, scale: format === "png" ? 2 : 1, filename: title.replace(/[^\w-]+/g, "-") });
}

function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
}
