// What every page does: theme switch, menus, toasts, times in the reader's zone.
import { showTimes } from "./times.js";

const YEAR = 31536000;

function chosenTheme() {
  return document.documentElement.dataset.theme ?? "system";
}

function chooseTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const age = theme === "system" ? 0 : YEAR;
  document.cookie = `vantage_theme=${theme};path=/;max-age=${age};samesite=lax`;
  showTheme();
  document.dispatchEvent(new Event("vantage:theme"));
}

function showTheme() {
  for (const button of document.querySelectorAll("[data-theme-choice]"))
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === chosenTheme()));
}

document.addEventListener("click", (event) => {
  const choice = event.target.closest("[data-theme-choice]");
  if (choice) chooseTheme(choice.dataset.themeChoice);
  event.target.closest("[data-close]")?.closest("li").remove();
  for (const menu of document.querySelectorAll("details[data-menu][open]"))
    if (!menu.contains(event.target)) menu.open = false;
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (chosenTheme() === "system") document.dispatchEvent(new Event("vantage:theme"));
});

showTheme();
showTimes(document);
