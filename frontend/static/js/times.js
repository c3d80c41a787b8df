// Times in the reader's zone: <time datetime data-ago> counts up, data-since a duration; all show date and offset on hover.
const UNITS = [["d", 86400], ["h", 3600], ["min", 60]];
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const precise = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const short = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

function offset(date) {
  const minutes = -date.getTimezoneOffset();
  const hours = String(Math.floor(Math.abs(minutes) / 60)).padStart(2, "0");
  return `UTC${minutes < 0 ? "−" : "+"}${hours}:${String(Math.abs(minutes) % 60).padStart(2, "0")}`;
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${String(Math.floor(whole / 60) % 60).padStart(2, "0")} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor(whole / 3600) % 24} h`;
}

export function ago(seconds) {
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  const [unit, size] = UNITS.find(([, size]) => seconds >= size);
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

function show(element, now) {
  const date = new Date(element.dateTime);
  if (Number.isNaN(date.getTime())) return;
  element.title = `${exact.format(date)} ${offset(date)}`;
  const passed = (now - date.getTime()) / 1000;
  if ("ago" in element.dataset) element.textContent = ago(passed);
  else if ("since" in element.dataset) element.textContent = duration(passed);
  else element.textContent = ("seconds" in element.dataset ? precise : short).format(date);
}

export function showTimes(root) {
  const now = Date.now();
  for (const element of root.querySelectorAll("time[datetime]")) show(element, now);
}

setInterval(() => showTimes(document), 1000);
