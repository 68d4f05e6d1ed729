// Light or dark, as Locust's page keeps it in this browser.

const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => "theme" in localStorage ? localStorage.theme === "dark" : system.matches;

export function follow(changed) {
  const apply = () => { document.body.classList.toggle("dark", isDark()); changed(); };
  document.querySelector("header button").addEventListener("click", () => { localStorage.theme = isDark() ? "light" : "dark"; apply(); });
  addEventListener("storage", apply);
  system.addEventListener("change", apply);
  apply();
}
