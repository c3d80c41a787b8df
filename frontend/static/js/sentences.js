// Sentences of the server beside the fields they are about: errors, and notes on what has no effect.
export function showSentences(form, byId, look) {
  for (const old of form.querySelectorAll(`p.${look}`)) {
    const id = old.id.replace(/-(error|note)$/, "");
    if (!old.closest("#summary") && !byId[id]) remove(old, id, look);
  }
  for (const [id, sentences] of Object.entries(byId)) {
    const control = document.getElementById(id);
    if (control) sentence(control, `${id}-${look}`, look).textContent = sentences.join(" ");
  }
}

function sentence(control, id, look) {
  const known = document.getElementById(id);
  if (known) return known;
  const made = Object.assign(document.createElement("p"), { id, className: look });
  const field = control.closest(".field");
  if (field) field.append(made);
  else (control.matches("select") ? control : control.querySelector(":scope > legend") ?? control.firstElementChild).after(made);
  if (look === "error") field?.classList.add("invalid");
  if (look === "error" && control.matches("input, select, textarea")) control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", `${control.getAttribute("aria-describedby") ?? ""} ${id}`.trim());
  return made;
}

function remove(old, id, look) {
  const control = document.getElementById(id);
  if (look === "error") {
    old.closest(".field")?.classList.remove("invalid");
    control?.removeAttribute("aria-invalid");
  }
  const others = (control?.getAttribute("aria-describedby") ?? "").split(" ").filter((word) => word && word !== old.id);
  if (others.length) control?.setAttribute("aria-describedby", others.join(" "));
  else control?.removeAttribute("aria-describedby");
  old.remove();
}
