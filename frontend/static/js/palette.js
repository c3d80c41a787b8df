// Plotly reads no CSS variables: resolve the colour names of figures ("data-1", "data-1/18") in the present theme.
const NAME = /^(data-\w+|ink|muted|hairline|paper|raised|outline|accent|warn)(?:\/(\d+))?$/;

export function palette() {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const known = new Map();
  const colour = (name) => {
    if (!known.has(name)) known.set(name, read(probe, name));
    return known.get(name);
  };
  const resolved = (value) => resolve(value, colour);
  resolved.done = () => probe.remove();
  return resolved;
}

function read(probe, name) {
  const [, token, percent] = NAME.exec(name);
  probe.style.color = `var(--${token})`;
  const colour = getComputedStyle(probe).color;
  if (!percent) return colour;
  const [r, g, b] = colour.match(/[\d.]+/g);
  return `rgba(${r},${g},${b},${percent / 100})`;
}

function resolve(value, colour) {
  if (typeof value === "string") return NAME.test(value) ? colour(value) : value;
  if (!value || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) =>
    [key, key === "x" || key === "y" || key === "meta" || key === "name" ? inner : resolve(inner, colour)]));
}
