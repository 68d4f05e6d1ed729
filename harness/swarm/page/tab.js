// On Locust's page: the live figures in the tab of ours, and words of explanation in the form.

import { explain, remember } from "./form.js";
import { Live, style } from "./live.js";

const TITLE = window.templateArgs.extended_tabs.at(-1).title.toLowerCase();
const live = new Live();

function settle() {
  const chosen = document.querySelector("[role=tab][aria-selected=true]");
  const panel = chosen?.closest(".MuiContainer-root");
  if (chosen?.innerText.trim().toLowerCase() === TITLE && panel) {
    if (live.element.parentNode !== panel) {
      panel.append(live.element);
      live.ask();
    }
  } else {
    live.element.remove();
  }
  document.querySelectorAll("form").forEach(explain);
}

style(document);
document.addEventListener("submit", remember, true);
new MutationObserver((changes) => {
  if (changes.some((change) => !live.element.contains(change.target))) settle();
}).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-selected"] });
document.addEventListener("click", () => setTimeout(() => live.draw(), 50));  // the theme may have been changed
settle();
live.watch();
