// The form of Locust's page: what each field means, the values that were started last, users that fit the load.

import { make } from "./chart.js";

const { help, seats } = window.templateArgs.kvswarm;
const seen = new WeakSet();
const last = {};

export function remember({ target: form }) {
  if (!form.querySelector("[name=scenario]")) return;
  for (const field of form.querySelectorAll("[name]")) last[field.name] = field.type === "checkbox" ? field.checked : field.value;
}

function put(field, value) {
  if (field.type === "checkbox") {
    if (field.checked !== value) field.click();
    return;
  }
  if (field.value === String(value)) return;
  const kind = field instanceof HTMLSelectElement ? HTMLSelectElement : HTMLInputElement;
  Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(field, value);
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new Event("change", { bubbles: true }));
}

export function explain(form) {
  const load = form.querySelector("[name=load]");
  const notice = form.querySelector("[role=alert]");
  if (notice && !seen.has(notice)) {
    seen.add(notice);
    notice.scrollIntoView({ block: "nearest" });
  }
  if (!load || seen.has(form)) return;
  seen.add(form);
  for (const [name, text] of Object.entries(help)) {
    const field = form.querySelector(`[name=${name.replace(/_(.)/g, (_, letter) => letter.toUpperCase())}]`);
    const box = field?.closest(".MuiFormControl-root, .MuiFormControlLabel-root");
    box?.after(make("p", { class: "kvswarm-help" }, text));
    if (field && field.name in last) put(field, last[field.name]);
  }
  [...form.querySelectorAll(".MuiAccordionSummary-root[aria-expanded=false]")].find((one) => one.innerText.startsWith("Custom"))?.click();
  load.addEventListener("change", () => fit(form, load.value === "open"));
  dim(form, load.value === "open");
}

function fit(form, isOpen) {  // seats of an open loop are there from the start, and more than the users of a closed one
  const users = form.querySelector("[name=userCount]"), ramp = form.querySelector("[name=spawnRate]");
  const [from, to] = isOpen ? [window.templateArgs.num_users, seats] : [seats, window.templateArgs.num_users];
  if (Number(users.value) === from) put(users, to);
  if (isOpen && Number(ramp.value) < Number(users.value)) put(ramp, users.value);
  if (!isOpen && Number(ramp.value) === from) put(ramp, to);
  dim(form, isOpen);
}

function dim(form, isOpen) {
  for (const name of ["rate", "arrivals"]) form.querySelector(`[name=${name}]`).closest(".MuiFormControl-root").classList.toggle("kvswarm-dim", !isOpen);
}
