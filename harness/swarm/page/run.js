// What became of a run: its report, which is a page of its own, and its files.

import { make, number } from "./chart.js";
import { PLACE, isDark, style } from "./live.js";
import { follow } from "./theme.js";

const id = decodeURIComponent(location.pathname.split("/").filter(Boolean).at(-1));
const place = document.querySelector(".kvswarm");
const at = (path) => new URL(`runs/${encodeURIComponent(id)}/${path}`, PLACE);
const report = make("div", { class: "report" }, make("p", { class: "empty" }, "The report is being made ..."));
const files = make("div");

style(document);
const frame = make("iframe", { title: "Report" });
const theme = () => isDark() ? "dark" : "light";
const paint = () => { frame.contentDocument?.documentElement?.setAttribute("data-theme", theme()); };
follow(() => { place.dataset.theme = theme(); paint(); });
document.title = `kvswarm: ${id}`;
place.append(make("h1", {}, id), report, make("h2", {}, "Files"), files);

async function sentence(answer) {
  return make("p", { class: "problem" }, await answer.text());
}

const link = (name, words) => make("li", {}, make("a", { href: at(`files/${name}`) }, name), words);

async function list() {
  const answer = await fetch(at("files/run.json"));
  if (!answer.ok) return files.replaceChildren(await sentence(answer));
  const manifest = await answer.json();
  const tables = Object.entries(manifest.parts).map(([table, parts]) => [table, parts, parts.reduce((sum, part) => sum + part.rows, 0)]);
  files.replaceChildren(
    make("ul", {}, link("run.json", ": what was run, against whom, when, and what belongs to it")),
    ...tables.filter(([, parts]) => parts.length).map(([table, parts, rows]) => make("details", { open: "" },
      make("summary", {}, `${table}: ${number(rows)} rows in Parquet`),
      make("ul", {}, ...parts.map((part) => link(part.name, `: ${number(part.rows)} rows`))))));
}

async function tell() {
  const answer = await fetch(at("report"));
  if (!answer.ok) return report.replaceChildren(await sentence(answer));
  // As high as the report is: the window scrolls, not the frame.
  frame.onload = () => {
    paint();
    const inside = frame.contentDocument.body;
    new ResizeObserver(() => { frame.style.height = `${inside.scrollHeight}px`; }).observe(inside);
  };
  frame.src = at("report");
  report.replaceChildren(make("p", {}, make("a", { href: at("report") }, "The report as a page of its own")), frame);
}

list();
tell();
