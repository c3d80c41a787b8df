// Show progress while a slow form is sent: how much of a file is there, then that the server works on it.
// Without this the form is sent all the same.

function show(form, text, share) {
  const place = form.querySelector("[data-sending]");
  place.hidden = false;
  place.querySelector("[data-said]").textContent = text;
  const bar = place.querySelector("progress");
  if (share === undefined) bar.removeAttribute("value");
  else bar.value = share;
}

function rest(form) {
  form.querySelector("[data-sending]").hidden = true;
  for (const button of form.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
}

function upload(form) {
  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", (event) => {
    const done = event.loaded / event.total;
    const percent = Math.floor(done * 100);
    show(form, done < 1 ? `Uploading: ${percent}%` : "Looking at the file", done < 1 ? done : undefined);
  });
  request.addEventListener("load", () => {
    if (request.status < 400) return location.assign(request.responseURL);
    const page = new DOMParser().parseFromString(request.responseText, "text/html");
    document.querySelector("main").replaceWith(page.querySelector("main"));
    document.querySelector("[role=alert]")?.scrollIntoView();
  });
  request.addEventListener("error", () => show(form, "The connection broke: try again.", 0));
  request.open("POST", form.action);
  request.send(new FormData(form));
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.slow) return;
  event.submitter?.setAttribute("aria-busy", "true");
  show(form, form.dataset.slow);
  if (!form.querySelector("input[type=file]")) return;
  event.preventDefault();
  upload(form);
});
addEventListener("pageshow", () => document.querySelectorAll("form[data-slow]").forEach(rest));
