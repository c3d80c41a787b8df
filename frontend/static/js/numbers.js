// Numbers as a reader wants them: four digits that matter, SI above a thousand.
const SCALES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function shown(value, unit = "") {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e18) return value.toExponential(2);
  if (unit === "bytes" || size >= 10000) {
    const [scale, letter] = SCALES.find(([scale]) => size >= scale) ?? [1, ""];
    return `${trim((value / scale).toPrecision(3))} ${letter}`.trim();
  }
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  if (unit === "fraction") return value.toFixed(3);
  if (Number.isInteger(value)) return String(value);
  const text = trim(value.toPrecision(4));
  return text.includes(".") ? text : trim(value.toPrecision(7)); // 1.00002 is no 1
}

function trim(text) {
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
}
