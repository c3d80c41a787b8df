// The span of a chart's value axis where Plotly's own choice misleads: a constant is not drawn from -1 to 1 as if it were 0.
const NEARLY = 1e-6; // a smaller spread, relative to the values, is rounding: it is drawn as what it is, a constant
const ABOVE = 1.05; // room for a line at the upper end

export function valueRange(traces) {
  const drawn = traces.filter((trace) => trace.yaxis !== "y2" && !trace.stackgroup);
  const values = drawn.flatMap((trace) => trace.y.filter(Number.isFinite));
  if (!values.length || drawn.length < traces.filter((trace) => trace.yaxis !== "y2").length) return null;
  const lines = drawn.filter((trace) => trace.meta.role === "line");
  const isShare = lines.length > 0 && lines.every((trace) => trace.meta.unit === "fraction");
  const [low, high] = values.reduce(([least, most], y) => [Math.min(least, y), Math.max(most, y)], [Infinity, -Infinity]);
  const isPoint = lines.every((trace) => trace.y.filter(Number.isFinite).length < 2);
  const isFlat = high - low <= NEARLY * Math.max(Math.abs(low), Math.abs(high));
  if (isShare && (isPoint || isFlat) && low >= 0 && high <= 1 + NEARLY) return [0, ABOVE];
  if (!isFlat) return null;
  if (!high) return [0, 1];
  return high > 0 ? [0, 2 * high] : [2 * low, 0];
}
