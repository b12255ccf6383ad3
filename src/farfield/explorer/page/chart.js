// A figure of lines: drawn for the page and, in light colours, for a file; read with a pointer or the arrow keys.

import { el, shorten, svg } from "./dom.js";
import { Axis } from "./axes.js";
import { colours, look, markerPath } from "./looks.js";
import { saveButtons } from "./save.js";

const FONT = "system-ui, sans-serif";

// spec: {title, x, y, series: [{label, look, points: [[x, y, words, value]], level}], absent: [{label, look, why}]}
// A file has its own legend; on the page one legend may serve all figures. `tall` is the height of the plot.
export function draw(spec, width, { theme = colours(), legend = true, tall = null } = {}) {
  const narrow = width < 420;
  const left = 58, right = 22;
  const title = wrapped(spec.title, Math.floor((width - 16) / 7.4));
  const top = 16 + 17 * title.length;
  const plot = tall ?? Math.round(Math.min(300, Math.max(190, width * 0.55)));
  const absent = (spec.absent ?? []).map((one) => ({ look: one.look,
    lines: wrapped(`${legend ? one.label : shorten(one.label, 40)}: ${one.why}`, Math.floor((width - left - 50) / 6.6)) }));
  const shown = legend ? spec.series : [];
  const rows = shown.length + absent.reduce((sum, one) => sum + one.lines.length, 0);
  const height = top + plot + 44 + rows * 17 + 6;
  const points = spec.series.flatMap((s) => s.points);
  const levels = spec.series.map((s) => s.level).filter((v) => v !== null && v !== undefined);
  const x = new Axis(spec.x, points.map((p) => p[0]));
  const y = new Axis(spec.y, [...points.map((p) => p[1]), ...levels]);
  const at = ([a, b]) => [x.place(a, left, width - right), y.place(b, top + plot, top)];
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": described(spec),
    "font-family": FONT, "font-size": 12, fill: theme.ink,
  }, svg("rect", { width, height, fill: theme.paper }),
    ...title.map((line, i) => svg("text", { x: 8, y: 18 + 17 * i, "font-weight": 600, "font-size": 13 }, line)));
  const line = (x1, y1, x2, y2, stroke) => svg("line", { x1, y1, x2, y2, stroke, "stroke-width": 1 });
  for (const tick of x.ticks(narrow ? 5 : 7)) {
    const place = x.place(tick.value, left, width - right);
    root.append(line(place, top, place, top + plot, theme.grid),
      svg("text", { x: place, y: top + plot + 16, "text-anchor": "middle", fill: theme.faint }, tick.text));
  }
  for (const tick of y.ticks(6)) {
    const place = y.place(tick.value, top + plot, top);
    root.append(line(left, place, width - right, place, theme.grid),
      svg("text", { x: left - 6, y: place + 4, "text-anchor": "end", fill: theme.faint }, tick.text));
  }
  root.append(line(left, top, left, top + plot, theme.faint), line(left, top + plot, width - right, top + plot, theme.faint),
    svg("text", { x: (left + width - right) / 2, y: top + plot + 34, "text-anchor": "middle" }, spec.x.label),
    svg("text", { transform: `translate(13 ${top + plot / 2}) rotate(-90)`, "text-anchor": "middle" }, spec.y.label));
  const inside = (p) => p.every(Number.isFinite) && p[1] >= top - 1 && p[1] <= top + plot + 1;
  spec.series.forEach((one, i) => {
    const style = look(one.look, theme);
    const places = one.points.map(at);
    let path = "";
    places.forEach((p, n) => {
      if (inside(p)) path += `${path && inside(places[n - 1] || []) && n ? "L" : "M"}${p[0].toFixed(1)} ${p[1].toFixed(1)}`;
    });
    root.append(stroke(path, style));
    const every = Math.max(1, Math.ceil(places.length / 14));
    places.forEach((p, n) => { if ((n + 2 * i) % every === 0 && inside(p)) root.append(mark(style, p, theme)); });
    if (one.level !== null && one.level !== undefined) {
      const level = at([x.kind === "log" ? 10 ** x.low : x.low, one.level])[1];
      root.append(svg("path", { d: `M${left} ${level}H${width - right}`, stroke: style.colour, "stroke-width": 1,
        "stroke-dasharray": "1 3", fill: "none" }));
    }
  });
  let row = top + plot + 54;
  const named = (number, lines) => {
    const style = look(number, theme);
    root.append(stroke(`M${left} ${row - 4}h30`, style), mark(style, [left + 15, row - 4], theme));
    for (const words of lines) {
      root.append(svg("text", { x: left + 38, y: row }, words));
      row += 17;
    }
  };
  for (const one of shown) named(one.look, [shorten(one.label, Math.floor((width - left - 50) / 6.6))]);
  for (const one of absent) named(one.look, one.lines);
  if (!points.length) {
    root.append(svg("text", { x: (left + width) / 2, y: top + plot / 2, "text-anchor": "middle", fill: theme.faint },
      spec.empty ?? (absent.length ? "no curve; see below why" : "no curve yet")));
  }
  return { root, at, left, right, top, plot, width };
}

// The values of a figure: one row for each place, one column for each curve.
export function csv(spec) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const places = [...new Set(spec.series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
  const rows = places.map((x) => [String(x), ...spec.series.map((s) => {
    const point = s.points.find((p) => p[0] === x);
    return point ? String(point[3] ?? point[1] ?? "") : "";
  })]);
  return [[spec.x.label, ...spec.series.map((s) => s.label)], ...rows].map((row) => row.map(quoted).join(",")).join("\n") + "\n";
}

// A text in lines of at most so many characters.
function wrapped(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + 1 + word.length > most) lines.push(shorten(word, most));
    else lines[lines.length - 1] = last ? `${last} ${word}` : shorten(word, most);
  }
  return lines;
}

function stroke(d, style) {
  return svg("path", { d, fill: "none", stroke: style.colour, "stroke-width": 1.8, "stroke-dasharray": style.dash || null,
    "stroke-linejoin": "round" });
}

function mark(style, [x, y], theme) {
  const open = style.marker === "cross" || style.marker === "plus";
  return svg("path", { d: markerPath(style.marker, x, y), fill: open ? "none" : theme.paper, stroke: style.colour,
    "stroke-width": 1.5 });
}

function described(spec) {
  const ends = spec.series.map((s) => {
    const last = s.points[s.points.length - 1];
    return `${s.label}: ${last ? last[2] : "nothing"}`;
  });
  const absent = (spec.absent ?? []).map((one) => `${one.label}: ${one.why}`);
  return `${spec.title}. ${spec.y.label} against ${spec.x.label}. At the end: ${[...ends, ...absent].join("; ")}`;
}

// The figure on the page, with a cursor that follows the pointer or the arrow keys and reads the values out.
export class Chart {
  constructor(name, { legend = true, tall = null } = {}) {
    Object.assign(this, { name, looks: { legend, tall } });
    this.place = el("div", { class: "plot", tabindex: "0", keydown: (e) => this.#key(e), pointermove: (e) => this.#point(e),
      pointerleave: () => this.#show(null), blur: () => this.#show(null) });
    this.readout = el("p", { class: "readout", "aria-live": "polite" });
    this.element = el("figure", { id: `figure-${name}` }, this.place, el("div", { class: "below" }, this.readout,
      saveButtons(name, () => draw(this.spec, 640, { theme: colours(false) }).root, () => csv(this.spec))));
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  update(spec) {
    this.spec = spec;
    this.draw();
  }

  draw() {
    const width = Math.round(this.place.clientWidth);
    if (!this.spec || width < 50) return;
    this.drawn = draw(this.spec, Math.min(1000, width), { ...this.looks, tall: this.looks.tall?.(width) });
    this.cursor = svg("g", { "pointer-events": "none" });
    this.drawn.root.append(this.cursor);
    this.place.replaceChildren(this.drawn.root);
    this.#show(this.index ?? null);
  }

  #xs() {
    return [...new Set(this.spec.series.flatMap((s) => s.points.map((p) => p[0])))]
      .map((x) => [this.drawn.at([x, 1])[0], x]).filter(([place]) => Number.isFinite(place)).sort((a, b) => a[0] - b[0]);
  }

  #point(event) {
    if (!this.drawn) return;
    const box = this.drawn.root.getBoundingClientRect();
    const here = ((event.clientX - box.left) / box.width) * this.drawn.width;
    const places = this.#xs();
    if (!places.length) return;
    let best = 0;
    places.forEach(([place], i) => { if (Math.abs(place - here) < Math.abs(places[best][0] - here)) best = i; });
    this.#show(best);
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -1e9, End: 1e9 }[event.key];
    if (!step || !this.drawn) return;
    event.preventDefault();
    const last = this.#xs().length - 1;
    this.#show(Math.max(0, Math.min(last, (this.index ?? (step > 0 ? -1 : last + 1)) + step)));
  }

  #show(index) {
    this.index = index;
    this.cursor?.replaceChildren();
    const places = index === null || !this.drawn ? [] : this.#xs();
    if (index === null || !places[index]) {
      this.readout.textContent = this.spec?.hint || "";
      return;
    }
    const [place, x] = places[index];
    const theme = colours();
    this.cursor.append(svg("line", { x1: place, x2: place, y1: this.drawn.top, y2: this.drawn.top + this.drawn.plot,
      stroke: theme.faint }));
    const said = [];
    for (const one of this.spec.series) {
      const point = one.points.find((p) => p[0] === x);
      if (!point) continue;
      const [a, b] = this.drawn.at(point);
      if (Number.isFinite(b)) {
        this.cursor.append(svg("circle", { cx: a, cy: b, r: 4, fill: look(one.look, theme).colour }));
      }
      said.push(`${shorten(one.label, 40)}: ${point[2]}`);
    }
    this.readout.textContent = said.join("; ");
  }
}
