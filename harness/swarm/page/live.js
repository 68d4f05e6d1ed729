// The live figures of a run: asks this process for what is new, and draws it.

import { Chart, clock, make, number } from "./chart.js";

export const PLACE = new URL("..", import.meta.url);
const EVERY_MS = 2000, STRETCH_S = 30;
const DASHES = [["p50", 0, "", 2.4], ["p90", 1, "7 3", 1.6], ["p99", 2, "2 3", 1.6]];
const OUTCOMES = [["hit", "hit", { colour: 1 }], ["miss", "miss", { colour: 2, marked: true }], ["unreported", "not told", { colour: 4 }]];
const percent = (value) => value === null || value === undefined ? "–" : `${number(Math.round(1000 * value) / 10)} %`;
const exact = (value) => value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`;
const tokens = (value) => value === null || value === undefined ? "–" : value >= 1e6 ? `${number(value / 1e6)} M` : value >= 1e3 ? `${number(value / 1e3)} k` : number(value);
const percentiles = (value, more) => DASHES.map(([label, i, dash, width]) => ({ label, dash, width, value: (point) => value(point)?.[i] ?? null, ...more }));

export function style(document) {
  document.head.append(make("link", { rel: "stylesheet", href: new URL("assets/style.css", PLACE) }));
}

export function isDark() {  // a page of ours says it itself, Locust's by its background
  if (document.body.classList.contains("kvswarm-page")) return document.body.classList.contains("dark");
  const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).map(Number);
  return r + g + b < 384;
}

function expectation(target, t) {  // over the same stretch as the measured rate, of the requests that are measured
  let expected = 0, prompt = 0;
  const [windows, shift] = target.exact ? [target.exact, target.measuredFrom ?? 0] : [target.expected?.windows ?? [], 0];
  if (!target.exact && t > target.expected?.until_s) return null;  // not all that ended before is known yet
  for (const window of windows) {
    const [from, to] = [window.start_s + shift, window.end_s + shift];
    const share = Math.max(0, Math.min(to, t) - Math.max(from, t - STRETCH_S)) / (to - from || 1);
    expected += share * window.expected;
    prompt += share * window.prompt_tokens;
  }
  return prompt ? expected / prompt : null;
}

function unexpected(target) {  // why the line of expected hits is not there, or ends early
  if (target.exact) return target.exact.length ? "" : "Expected by the engine's cache rules: not known; the report says why.";
  const told = target.expected;
  if (!told) return "Expected by the engine's cache rules: here when the run has ended.";
  if (told.why) return `Expected by the engine's cache rules: ${told.windows.length ? "no more" : "not known"} while the run goes on, as ${told.why}.`;
  return "What is expected by the engine's cache rules comes some seconds later than the rest.";
}

function charts(target) {
  const outcomes = OUTCOMES.filter(([how]) => target.shown.includes(how)).flatMap(([how, group, look]) => percentiles((point) => point.ttft[how], { group, ...look }));
  const capacity = target.capacity;
  return [
    new Chart({ title: "Token hit rate", top: 1, shown: percent, empty: "No request has told its cached tokens yet.", series: [
      { label: "per request", value: (point) => point.hit_rate, colour: 1, width: 2.4 },
      { label: "server's counters", value: (point) => point.counter_rate, colour: 2, dash: "7 3", marked: true },
      ...((target.exact ?? target.expected?.windows)?.length ? [{ label: "expected by the cache's rules", value: (point) => expectation(target, point.t), colour: 3, dash: "2 3", late: !target.exact }] : []),
    ], note: unexpected(target) }),
    new Chart({ title: "Time to first token", unit: "ms, logarithmic", log: true, series: outcomes, empty: "No answer yet.",
      note: "hit: at least half of the prompt came from the cache; miss: less." }),
    new Chart({ title: "Time per output token", unit: "ms", series: percentiles((point) => point.tpot, { colour: 1 }), empty: "No answer of two tokens yet." }),
    new Chart({ title: "Sessions and requests", unit: "at the moment", series: [
      { label: "live sessions", value: (point) => point.sessions, colour: 1, width: 2.4 },
      { label: "running on the server", value: (point) => point.running, colour: 3, dash: "7 3" },
      { label: "waiting there", value: (point) => point.waiting, colour: 2, dash: "2 3", marked: true },
    ] }),
    new Chart({ title: "Working set and capacity", unit: "tokens", shown: tokens, empty: "Neither capacity nor working set is known.", series: [
      { label: "working set, planned", value: (point) => point.working_set, colour: 1, width: 2.4 },
      { label: "KV capacity", value: () => capacity, colour: 4, dash: "7 3" },
      { label: "held by running requests", value: (point) => point.kv_in_use, colour: 3, dash: "2 3" },
    ], note: "Planned: all that sessions share, and what each live session can come back to, on average." }),
    new Chart({ title: "Harness lag", unit: "ms, logarithmic", log: true, empty: "No request was sent yet.", series: [
      { label: "sent late p50", value: (point) => point.late?.[0], colour: 1, width: 2.4 },
      { label: "p99", value: (point) => point.late?.[2], colour: 1, dash: "2 3" },
      { label: "event loop, worst", value: (point) => point.loop_lag, colour: 2, dash: "7 3", marked: true },
    ], note: "Red, in all charts: the harness itself was the bottleneck." }),
  ];
}

const ms = (value) => value === null || value === undefined ? "–" : `${number(value)} ms`;
const NAMES = { hit: "TTFT p50, hits", miss: "TTFT p50, misses", unreported: "TTFT p50, not told which" };
const TILES = [
  ["hit rate", (now) => exact(now.hit_rate), (now) => `${number(now.reporting)} of ${number(now.requests)} requests tell`],
  ...Object.entries(NAMES).map(([how, name]) => [name, (now) => ms(now.ttft[how]?.[0]), (now) => `${number(now.timed[how])} requests`, how]),
  ["TPOT p50", (now) => ms(now.tpot?.[0]), (now) => `p99 ${ms(now.tpot?.[2])}`],
  ["requests a second", (now) => number(now.per_second), (now) => `${number(now.failed)} failed${now.refused ? `, ${number(now.refused)} refused` : ""}`],
  ["live sessions", (now) => number(now.sessions), (now) => now.waiting === null ? "" : `${number(now.waiting)} wait on the server`],
];

class Target {
  constructor(name) {
    this.name = name;
    this.points = [];
    this.every = this.count = 0;
    this.tiles = make("div", { class: "tiles" });
    this.grid = make("div", { class: "charts" });
    this.heading = make("h2", {}, name);
    this.empty = make("p", { class: "empty" });
    this.element = make("section", {}, this.heading, this.empty, this.tiles, this.grid);
  }

  take(line) {
    if (this.points.at(-1) && this.loose) this.points.pop();
    this.points.splice(line.from);
    this.points.push(...line.points);
    this.every = line.every;
    this.count = line.count;
    this.capacity = line.capacity;
    this.measuredFrom = line.measured_from;
    this.expected = line.expected;
    this.newest = line.newest;
    this.loose = line.newest && line.newest.t !== this.points.at(-1)?.t;  // thinned out, but it is what goes on now
    if (this.loose) this.points.push(line.newest);
  }

  draw(several, waits) {
    this.heading.hidden = !several;
    this.empty.textContent = this.newest ? "" : waits;
    this.tiles.hidden = this.grid.hidden = !this.newest;
    if (!this.newest) return;
    const seen = OUTCOMES.map(([how]) => how).filter((how) => this.points.some((point) => point.ttft[how]));
    this.shown = seen.includes("unreported") ? seen : ["hit", "miss"];
    const kind = `${this.shown} ${Boolean((this.exact ?? this.expected?.windows)?.length)} ${unexpected(this)}`;
    if (this.kind !== kind) {
      this.kind = kind;
      this.charts = charts(this);
      this.grid.replaceChildren(...this.charts.map((chart) => chart.element));
    }
    this.tiles.replaceChildren(...TILES.filter(([, , , how]) => !how || this.shown.includes(how)).map(([name, value, more]) => make("div", {}, make("span", {}, name), make("b", {}, value(this.newest)), make("small", {}, more(this.newest)))));
    for (const chart of this.charts) chart.draw(this.points, this.measuredFrom);
  }
}

const WORDS = { ramp: "ramp: not measured yet", measure: "measuring", drain: "draining: no new requests", "": "getting ready" };

export class Live {
  constructor() {
    this.element = make("div", { class: "kvswarm" });
    this.status = make("div", { class: "status", role: "status" });
    this.problems = make("ul", { class: "problems" });
    this.places = make("div");
    this.table = make("div", { class: "scroll" });
    this.foot = make("footer");
    this.element.append(this.status, this.problems, this.places, this.table, this.foot);
    this.forget("");
    addEventListener("resize", () => this.draw());
  }

  forget(run) {
    this.run = run;
    this.asked = false;
    this.targets = [];
    this.places.replaceChildren();
  }

  async ask() {
    const have = this.targets.map((target) => `${target.every}.${target.count}`).join("-");
    try {
      const answer = await fetch(new URL(`live.json?run=${encodeURIComponent(this.run)}&have=${have}`, PLACE));
      this.take(await answer.json());
      this.lost = false;
    } catch {
      this.lost = true;
    }
    this.draw();
  }

  take(told) {
    this.told = told;
    if (!told) return;
    if (told.about.run_id !== this.run) {
      this.forget(told.about.run_id);
      this.targets = told.lines.map((line) => new Target(line.target));
      this.places.replaceChildren(...this.targets.map((target) => target.element));
    }
    told.lines.forEach((line, i) => this.targets[i].take(line));
    if (told.about.state !== "running" && !this.asked && this.targets.some((target) => target.newest)) {
      this.asked = true;
      this.expect();
    }
  }

  async expect() {
    const run = this.run, answer = await fetch(new URL(`runs/${encodeURIComponent(run)}/expected.json`, PLACE));
    const told = answer.ok ? await answer.json() : {};
    if (run !== this.run) return;
    for (const target of this.targets) target.exact = told[target.name] ?? [];
    this.draw();
  }

  draw() {
    if (!this.element.isConnected) return;
    this.element.dataset.theme = isDark() ? "dark" : "light";
    if (!this.told) {
      this.status.replaceChildren(this.lost ? "kvswarm does not answer." : "No run yet: choose a scenario and a target in the form, and press Start.");
      return;
    }
    const { about, table, columns } = this.told;
    const over = about.state !== "running";
    const word = over ? about.state : WORDS[about.phase];
    const parts = [about.scenario, about.load, ...(about.legs > 1 ? [`target ${about.leg} of ${about.legs}: ${about.loaded.join(", ")}`] : []), ...(about.seconds === null || over ? [] : [clock(Math.max(0, about.seconds))])];
    this.status.replaceChildren(make("span", { class: `badge ${over ? about.state : about.phase}` }, word), ...parts.map((part) => make("span", {}, part)), ...(this.lost ? [make("span", { class: "problem" }, "kvswarm does not answer; the figures are old.")] : []));
    this.problems.replaceChildren(...about.problems.map((problem) => make("li", {}, problem)));
    for (const target of this.targets) target.draw(this.targets.length > 1, over ? "It was not loaded." : about.loaded.includes(target.name) ? "The first figures come some seconds after the load has begun." : "It has its turn later.");
    const titles = columns;
    this.table.hidden = !table.length;
    this.table.replaceChildren(make("table", {},
      make("caption", {}, "Since the start, rounded; the record has each request."),
      make("thead", {}, make("tr", {}, ...titles.map(([, title]) => make("th", {}, title)))),
      make("tbody", {}, ...table.map((row) => make("tr", {}, ...titles.map(([key]) => make("td", {}, String(row[key]))))))));
    const at = new URL(`runs/${about.run_id}`, PLACE);
    this.foot.replaceChildren(
      make("p", { class: "run" }, `Run ${about.run_id}: ${about.state}`),
      over ? make("p", {}, make("a", { class: "button", href: at, target: "_blank" }, "Open the report"), " with its tables and all files of the run") : make("p", { class: "empty" }, "The report is here when the run has ended."),
      make("p", { class: "note" }, `Directory: ${about.directory}`), make("p", { class: "note" }, `In a terminal: ${about.report}`),
      ...about.notes.map((note) => make("p", { class: "note" }, `Note: ${note}`)),
      make("p", { class: "note" }, "Rates and percentiles are of the last 30 s, percentiles within 0.5 %. Grey: the ramp, which is not measured. Times are minutes and seconds since the load began."));
  }

  async watch() {
    for (;;) {
      if (this.element.isConnected && document.visibilityState === "visible") await this.ask();
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }
}
