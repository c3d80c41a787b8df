// Replace parts of a page by the server's newer ones; what did not change is left alone, focus and all.
export async function fetchParts(url, headers = {}) {
  const response = await fetch(url, { headers });
  if (!response.ok || response.redirected) return null;
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

export function swapParts(here, there, name) {
  for (const part of here.querySelectorAll(`[${name}]`)) {
    const next = there.querySelector(`[${name}="${CSS.escape(part.getAttribute(name))}"]`);
    if (!next || isInUse(part)) continue;
    swap(part, next);
  }
}

export function swap(part, next) {
  const before = part.dataset.drawn ?? part.innerHTML;
  if (before === next.innerHTML) return false;
  part.innerHTML = next.innerHTML; // both were escaped by the server; scripts set so do not run
  part.dataset.drawn = next.innerHTML;
  return true;
}

function isInUse(part) {
  return part.querySelector(":popover-open") !== null || (part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"));
}
