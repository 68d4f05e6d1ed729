// A line chart in SVG: points over time, gaps where a value is not known, a legend with the values of one moment.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 190, LEFT = 46, RIGHT = 12, TOP = 10, BOTTOM = 22;

export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function clock(seconds) {
  const whole = Math.round(seconds), pad = (n) => String(n).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes}:${pad(whole % 60)}` : `${Math.floor(minutes / 60)}:${pad(minutes % 60)}:${pad(whole % 60)}`;
}

export function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

function nice(value) {  // the next of 1, 2, 5, 10, 20, ...
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value * 0.999999);
}

function niceBelow(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [5, 2, 1].map((n) => n * power).find((n) => n <= value * 1.000001);
}

function linear(values, top) {
  const most = Math.max(1, ...values) * 1.04;
  const step = top ? top / 4 : nice(most / 4.001);
  const max = top ?? Math.ceil(most / step) * step;
  const ticks = Array.from({ length: Math.round(max / step) + 1 }, (_, i) => i * step);
  return { ticks, place: (value) => value / max };
}

function logarithmic(values) {
  const known = values.filter((value) => value > 0);
  const min = known.length ? niceBelow(Math.min(...known)) : 1;
  const max = Math.max(known.length ? nice(Math.max(...known)) : 10, min * 10);
  const all = [];
  for (let value = min; value <= max * 1.000001; value = nice(value * 1.5)) all.push(value);
  const ticks = all.length > 7 ? all.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-6) : all;
  return { ticks, place: (value) => Math.log(Math.max(value, min) / min) / Math.log(max / min) };
}

function timeTicks(end) {
  const step = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400].find((s) => end / s <= 5) ?? 28800;
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => i * step);
}

export class Chart {
  // spec: {title, unit, series: [{label, value(point), colour (1-4), dash, width, marked, group, late}], top, log, shown(value), note}
  constructor(spec) {
    this.spec = { shown: number, note: "", ...spec };
    this.picture = svg("svg", { role: "img", "aria-label": `${spec.title} over time` });
    this.legend = make("div", { class: "legend" });
    this.empty = make("p", { class: "empty" });
    this.heading = make("figcaption", {}, make("b", {}, spec.title), spec.unit ? ` ${spec.unit}` : "");
    this.frame = make("div", { class: "frame" }, this.picture, this.empty);
    this.element = make("figure", {}, this.heading, this.frame, this.legend);
    if (this.spec.note) this.element.append(make("p", { class: "note" }, this.spec.note));
    this.picture.addEventListener("pointermove", (event) => this.point(event));
    this.picture.addEventListener("pointerleave", () => { this.at = null; this.draw(this.points); });
  }

  point(event) {
    if (!this.points?.length) return;
    const t = (event.offsetX - LEFT) / (this.width - LEFT - RIGHT) * this.end;
    this.at = this.points.reduce((best, one) => Math.abs(one.t - t) < Math.abs(best.t - t) ? one : best).t;
    this.draw(this.points);
  }

  draw(points, measuredFrom = this.measuredFrom) {
    this.points = points;
    this.measuredFrom = measuredFrom;
    this.width = Math.max(240, Math.round(this.frame.clientWidth));
    const { series, log, top } = this.spec;
    const values = series.flatMap((one) => points.map(one.value)).filter((value) => value !== null && value !== undefined);
    this.end = Math.max(60, ...points.map((point) => point.t));
    this.empty.textContent = values.length ? "" : (this.spec.empty ?? "Nothing yet.");
    const scale = log ? logarithmic(values) : linear(values, top);
    const x = (t) => LEFT + t / this.end * (this.width - LEFT - RIGHT);
    const y = (value) => HEIGHT - BOTTOM - Math.min(1, scale.place(value)) * (HEIGHT - TOP - BOTTOM);
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.picture.setAttribute("height", HEIGHT);
    const moment = points.find((point) => point.t === this.at) ?? points.at(-1);
    this.picture.replaceChildren(
      ...this.bands(points, x),
      ...this.axes(scale, x, y),
      ...series.flatMap((one) => this.line(one, points, x, y)),
      ...(this.at !== null && this.at !== undefined && moment ? [svg("line", { class: "cursor", x1: x(moment.t), x2: x(moment.t), y1: TOP, y2: HEIGHT - BOTTOM })] : []),
    );
    this.tell(moment);
  }

  bands(points, x) {  // where nothing is measured, and where the harness was the bottleneck
    const found = [];
    const band = (kind, from, to) => found.push(svg("rect", { class: kind, x: x(from), y: TOP, width: Math.max(1, x(to) - x(from)), height: HEIGHT - TOP - BOTTOM }));
    if (points.length && this.measuredFrom !== 0) band("ramp", 0, Math.min(this.measuredFrom ?? Infinity, points.at(-1).t));
    points.forEach((point, i) => {
      if (point.bottleneck) band("bottleneck", i ? points[i - 1].t : 0, point.t);
    });
    return found;
  }

  axes(scale, x, y) {
    const found = scale.ticks.flatMap((tick) => [
      svg("line", { class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y(tick), y2: y(tick) }),
      svg("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, this.spec.shown(tick)),
    ]);
    for (const tick of timeTicks(this.end)) {
      const last = x(tick) > this.width - 30;
      found.push(svg("text", { x: last ? this.width - 2 : x(tick), y: HEIGHT - 5, "text-anchor": last ? "end" : "middle" }, clock(tick)));
    }
    return found;
  }

  line(one, points, x, y) {
    const pieces = [[]];
    for (const point of points) {
      const value = one.value(point);
      if (value === null || value === undefined) pieces.push([]);
      else pieces.at(-1).push([x(point.t), y(value)]);
    }
    const look = { class: `line c${one.colour}`, "stroke-width": one.width ?? 2, "stroke-dasharray": one.dash ?? "" };
    const found = pieces.filter((piece) => piece.length).map((piece) => svg("polyline", {
      ...look, points: (piece.length > 1 ? piece : [piece[0], [piece[0][0] + 2, piece[0][1]]]).map((place) => place.map((n) => n.toFixed(1)).join()).join(" "),
    }));
    if (one.marked) {
      const all = pieces.flat(), every = Math.max(1, Math.ceil(all.length / 12));
      all.forEach(([px, py], i) => {
        if (i % every === 0 || i === all.length - 1) found.push(svg("rect", { class: `mark c${one.colour}`, x: px - 3, y: py - 3, width: 6, height: 6 }));
      });
    }
    return found;
  }

  tell(moment) {
    const groups = new Map();
    for (const one of this.spec.series) {
      const known = one.late && !this.at ? this.points.findLast((point) => one.value(point) !== null) : moment;  // its newest
      const value = known ? one.value(known) : null;
      const sample = svg("svg", { width: 26, height: 10 },
        svg("line", { class: `line c${one.colour}`, x1: 1, x2: 25, y1: 5, y2: 5, "stroke-width": one.width ?? 2, "stroke-dasharray": one.dash ?? "" }),
        ...(one.marked ? [svg("rect", { class: `mark c${one.colour}`, x: 10, y: 2, width: 6, height: 6 })] : []));
      const entry = make("span", {}, sample, ` ${one.label} `, make("b", {}, this.spec.shown(value)));
      groups.set(one.group, [...(groups.get(one.group) ?? []), entry]);
    }
    this.legend.replaceChildren(...[...groups].map(([name, entries]) => make("div", {}, ...(name ? [make("i", {}, name)] : []), ...entries)));
  }
}
