// The parameters of an encoding: a slider, and a field for an exact value such as 1/16.

import { el } from "./dom.js";

const STEPS = 1000;

// A range around a value in which the heads of a learned parameter might start.
function start(number) {
  const twice = Number((2 * number).toPrecision(3));
  return twice > 0 ? `0:${twice}` : twice < 0 ? `${twice}:0` : "-1:1";
}

export class Sliders {
  constructor(id, one, changed) {
    Object.assign(this, { id, one, changed, rows: new Map() });
    this.element = el("div", { class: "sliders" });
  }

  // Keep the rows that are there, so that a slider under a finger stays there.
  show(parameters) {
    const names = parameters.map((p) => p.name);
    if (names.join() !== [...this.rows.keys()].join()) {
      this.rows = new Map(parameters.map((p) => [p.name, this.#row(p.name)]));
      this.element.replaceChildren(...[...this.rows.values()].map((row) => row.element));
    }
    for (const p of parameters) this.#update(this.rows.get(p.name), p);
  }

  #row(name) {
    const row = { name };
    const set = (text) => {
      if (text) this.one.set[name] = text;
      else delete this.one.set[name];
      this.changed();
    };
    row.range = el("input", { type: "range", id: `${this.id}-${name}`, min: "0", max: String(STEPS), step: "1",
      input: () => {
        const text = this.#text(row);
        row.exact.value = text;
        set(text);
      } });
    row.exact = el("input", { type: "text", "aria-label": `exact value of ${name}`, size: "9", autocomplete: "off", spellcheck: "false",
      change: () => set(row.exact.value.trim()) });
    row.reset = el("button", { type: "button", class: "reset", "aria-label": `Give ${name} its usual value`, title: "Usual value",
      click: () => set("") }, "↺");
    row.learn = el("input", { type: "checkbox", "aria-label": `${name} is learned`, change: () => set(row.learn.checked ? start(row.p.number) : row.p.value) });
    row.said = el("span", {});
    row.origin = el("span", { class: "origin" }, el("label", { class: "learn", title: "Each head learns it, and starts in this range" }, row.learn, "learned"), row.said);
    row.element = el("div", { class: "slider" }, el("label", { for: row.range.id }, name), row.range, row.exact, row.reset, row.origin);
    return row;
  }

  // An answer to an earlier value leaves the slider alone, which may have been moved again.
  #update(row, p) {
    row.p = p;
    const busy = document.activeElement, set = this.one.set[p.name];
    const current = p.given ? set === p.text : set === undefined;
    if (current && (busy !== row.range || !p.given)) row.range.value = String(Math.round(this.#share(p) * STEPS));
    if (current && busy !== row.exact) row.exact.value = p.text;
    row.range.setAttribute("aria-valuetext", `${p.name} = ${p.text}`);
    row.reset.disabled = !p.given;
    if (current) row.learn.checked = p.learned;
    row.said.textContent = [p.domain.replace(">=", "≥"), p.origin].filter(Boolean).join("; ");
  }

  #share(p) {
    const share = p.logarithmic ? Math.log(p.number / p.least) / Math.log(p.most / p.least) : (p.number - p.least) / (p.most - p.least);
    return Math.min(1, Math.max(0, share));
  }

  #text(row) {
    const { least, most, logarithmic, step } = row.p;
    const share = Number(row.range.value) / STEPS;
    const value = logarithmic ? least * (most / least) ** share : least + (most - least) * share;
    if (step) return String(Math.max(step, Math.round(value / step) * step));
    const near = (most - least) / STEPS;
    return String(Number(logarithmic || Math.abs(value) > near ? value.toPrecision(3) : "0"));
  }
}
