// The charts of a page: fetch those in view, then only what is new; keep zoom; legends, tables, exports.
import { draw, exportImage } from "./chart.js";
import { shown } from "./numbers.js";
import { fillTable } from "./chart-table.js";
import { throttled } from "./throttle.js";

const EVERY = 700; // ms between two fetches while news comes in
const MOST_POINTS = 900; // then the whole line is read again in wider buckets

export class Board {
  constructor(root) {
    this.root = root;
    this.url = root.dataset.charts;
    this.axis = root.dataset.axis ?? "step";
    this.smoothing = Number(root.dataset.smoothing ?? 0);
    this.superseded = root.dataset.superseded === "1";
    this.attempt = null;
    this.charts = new Map();
    this.seen = new IntersectionObserver((entries) => this.look(entries), { rootMargin: "200px" });
    this.refresh = throttled(() => this.fetchStale(), EVERY);
    for (const element of root.querySelectorAll("figure[data-chart]")) this.add(element);
    document.addEventListener("vantage:theme", () => this.redrawAll());
  }

  add(element) {
    const chart = { element, slug: element.dataset.chart, inView: false, stale: true, figure: null, hidden: new Set(), range: null };
    this.charts.set(chart.slug, chart);
    element.addEventListener("click", (event) => this.act(chart, event));
    this.seen.observe(element);
  }

  look(entries) {
    for (const entry of entries) {
      const chart = this.charts.get(entry.target.dataset.chart);
      chart.inView = entry.isIntersecting;
      if (chart.inView && chart.dirty) this.redraw(chart);
    }
    if (this.wanted().length) this.fetchStale();
  }

  news() {
    for (const chart of this.charts.values()) chart.stale = true;
    if (!document.hidden) this.refresh();
  }

  setAxis(axis) {
    this.axis = axis;
    this.forget();
  }

  setSuperseded(shown) {
    this.superseded = shown;
    this.forget();
  }

  setSmoothing(share) {
    this.smoothing = share;
    this.redrawAll();
  }

  forget() {
    for (const chart of this.charts.values()) Object.assign(chart, { figure: null, stale: true, range: null });
    this.fetchStale();
  }

  view() {
    return `${this.axis} ${this.superseded}`;
  }

  wanted() {
    return [...this.charts.values()].filter((chart) => chart.inView && chart.stale && !chart.asked);
  }

  async fetchStale() {
    const charts = this.wanted();
    if (!charts.length) return;
    for (const chart of charts) Object.assign(chart, { asked: true, stale: false });
    const zoomed = charts.filter((chart) => chart.range);
    const plain = charts.filter((chart) => !chart.range);
    await Promise.all([this.fetchSome(plain), ...zoomed.map((chart) => this.fetchSome([chart], chart.range))]);
  }

  async fetchSome(charts, range = null) {
    if (!charts.length) return;
    const query = new URLSearchParams({ x: this.axis });
    const view = this.view();
    if (this.superseded) query.set("superseded", "1");
    for (const chart of charts) query.append("chart", range ? chart.slug : asked(chart));
    if (range) range.forEach((end, n) => query.set(n ? "high" : "low", end));
    try {
      const response = await fetch(`${this.url}?${query}`, { headers: { accept: "application/json" } });
      if (!response.ok) throw new Error(String(response.status));
      const answer = await response.json();
      if (view === this.view()) this.take(charts, answer);
      this.root.classList.remove("out-of-reach");
    } catch (error) {
      // The server is away: what is drawn stays, and the next news (or reconnection) asks again.
      for (const chart of charts) chart.stale = true;
      this.root.classList.add("out-of-reach");
    } finally {
      for (const chart of charts) chart.asked = false;
      if (view !== this.view()) this.refresh();
    }
  }

  take(charts, { figures, attempt }) {
    const resumed = this.attempt !== null && attempt !== this.attempt;
    this.attempt = attempt;
    if (resumed) return this.forget();
    for (const chart of charts) {
      const figure = figures[chart.slug];
      if (!figure) continue;
      chart.figure = chart.figure && !chart.range && figure.since !== null ? merged(chart.figure, figure) : figure;
      if (longest(chart.figure) > MOST_POINTS && figure.since !== null) Object.assign(chart, { figure: null, stale: true });
      else this.redraw(chart);
    }
    if (this.wanted().length) this.refresh();
  }

  redrawAll() {
    for (const chart of this.charts.values()) this.redraw(chart);
  }

  redraw(chart) {
    if (!chart.figure) return;
    chart.dirty = !chart.inView;
    if (chart.dirty) return;
    const plot = chart.element.querySelector(".plot");
    const isEmpty = !longest(chart.figure);
    chart.element.classList.toggle("no-data", isEmpty);
    chart.element.classList.remove("waiting");
    this.legend(chart);
    if (chart.element.querySelector(".chart-table:not([hidden])")) this.table(chart);
    if (isEmpty) return;
    const drawn = chart.zoomable ? undefined : () => this.zoomable(chart, plot);
    draw(plot, chart.figure, { smoothing: this.smoothing, hidden: chart.hidden, range: chart.range, drawn });
  }

  zoomable(chart, plot) {
    chart.zoomable = true;
    plot.on("plotly_relayout", (change) => {
      const range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (range.every(Number.isFinite)) chart.range = range;
      else if (change["xaxis.autorange"] && chart.range) Object.assign(chart, { range: null, figure: null });
      else return;
      chart.stale = true;
      this.fetchStale();
    });
  }

  legend(chart) {
    const place = chart.element.querySelector(".legend");
    const lines = chart.figure.data.filter((trace) => trace.meta.role === "line");
    if (place.children.length !== lines.length) place.replaceChildren(...lines.map((trace) => entry(trace, lines.length)));
    lines.forEach((trace, index) => {
      const item = place.children[index];
      item.dataset.key = trace.meta.key;
      item.querySelector(".value").textContent = shown(lastFinite(trace.y), trace.meta.unit);
      if (item.tagName === "BUTTON") item.setAttribute("aria-pressed", String(!chart.hidden.has(trace.meta.key)));
    });
    const marks = chart.figure.data.filter((trace) => trace.meta.role === "nonfinite");
    const note = chart.element.querySelector(".nonfinite");
    note.hidden = !marks.length;
    note.textContent = marks.length ? "× marks values that were NaN or infinite" : "";
    const lost = new Set(chart.figure.data.filter((trace) => trace.meta.role === "superseded").map((trace) => trace.meta.attempt));
    const lostNote = chart.element.querySelector(".superseded");
    lostNote.hidden = !lost.size;
    lostNote.textContent = lost.size ? `dashed: superseded, attempt ${[...lost].sort((a, b) => a - b).join(", ")}` : "";
  }

  table(chart) {
    fillTable(chart.element.querySelector(".chart-table"), chart.figure);
  }

  act(chart, event) {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.key !== undefined) this.toggle(chart, button.dataset.key);
    else if (button.dataset.act === "table") this.toggleTable(chart, button);
    else if (chart.figure && (button.dataset.act === "png" || button.dataset.act === "svg"))
      exportImage(chart.figure, { smoothing: this.smoothing, hidden: chart.hidden, range: chart.range },
        { title: chart.element.dataset.title, format: button.dataset.act });
  }

  toggle(chart, key) {
    if (!chart.hidden.delete(key)) chart.hidden.add(key);
    this.redraw(chart);
  }

  toggleTable(chart, button) {
    const place = chart.element.querySelector(".chart-table");
    place.hidden = !place.hidden;
    button.setAttribute("aria-expanded", String(!place.hidden));
    if (!place.hidden && chart.figure) this.table(chart);
  }
}

function asked(chart) {
  const since = chart.figure ? lastPlace(chart.figure) : null;
  return since === null ? chart.slug : `${chart.slug}@${since}`;
}

function lastPlace(figure) {
  const ends = figure.data.filter((trace) => trace.meta.role === "line" && trace.x.length).map((trace) => trace.x.at(-1));
  return ends.length ? Math.min(...ends) : null;
}

function longest(figure) {
  return Math.max(0, ...figure.data.map((trace) => trace.x.length));
}

export function merged(old, tail) {
  const known = new Map(old.data.map((trace) => [trace.uid, trace]));
  for (const trace of tail.data) {
    const before = known.get(trace.uid);
    known.set(trace.uid, before ? joined(before, trace, tail.since) : trace);
  }
  return { data: [...known.values()].sort((a, b) => a.meta.order - b.meta.order), layout: tail.layout };
}

function joined(before, after, since) {
  const cut = before.x.findIndex((x) => x >= since);
  const keep = cut < 0 ? before.x.length : cut;
  const columns = Object.keys(after).filter((name) => Array.isArray(after[name]));
  return { ...after, ...Object.fromEntries(columns.map((name) => [name, before[name].slice(0, keep).concat(after[name])])) };
}

function lastFinite(ys) {
  return ys.findLast((y) => y !== null);
}

function entry(trace, count) {
  const item = document.createElement(count > 1 ? "button" : "span");
  if (count > 1) item.type = "button";
  item.className = "entry";
  const swatch = document.createElement("span");
  swatch.className = `swatch ${trace.line.color} ${trace.stackgroup ? "area" : trace.line.dash}`;
  const label = document.createElement("span");
  label.className = "label";
  label.textContent = trace.meta.label;
  label.hidden = count === 1;
  const value = document.createElement("span");
  value.className = "value";
  item.append(swatch, label, value);
  return item;
}
