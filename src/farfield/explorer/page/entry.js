// The upper part of an encoding: its formula, its verdict and its sliders, small enough to stand beside the curves.

import { el, math, put, svg } from "./dom.js";
import { colours, look, markerPath } from "./looks.js";
import { Sliders } from "./sliders.js";
import { state } from "./state.js";

let counted = 0;
const loading = () => !document.getElementById("loading").hidden; // only a page without a server loads Python

export class Entry {
  // changed(step): the state has changed; removed(): the button was pressed
  constructor(encoding, { zoo, changed, removed }) {
    Object.assign(this, { encoding, one: encoding.one, changed, id: `entry-${(counted += 1)}` });
    this.swatch = el("span", { class: "swatch" });
    this.input = el("input", { type: "text", id: `${this.id}-formula`, list: "zoo", spellcheck: "false", autocomplete: "off",
      autocapitalize: "off", maxlength: "1000", input: () => this.#typed(false), change: () => this.#typed(true) });
    this.input.value = this.one.formula;
    this.pick = el("select", { "aria-label": "Pick from the zoo", change: () => this.#picked() },
      el("option", { value: "" }, "zoo…"), ...zoo.map((e) => el("option", { value: e.name }, e.name)));
    this.remove = el("button", { type: "button", class: "remove", "aria-label": "Remove this encoding", title: "Remove", click: removed }, "×");
    this.sliders = new Sliders(this.id, this.one, () => changed(false));
    const part = (name) => { this[name] = el("div", { class: name }); return this[name]; };
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    this.element = el("article", { class: "entry" },
      el("div", { class: "pick" }, this.swatch,
        el("label", { for: this.input.id, class: "unseen" }, "Formula of the bias r(t), or a name"), this.input, this.pick, this.remove),
      this.error, part("typeset"), part("verdict"), part("reach"), this.sliders.element);
  }

  place(number, alone) {
    this.element.setAttribute("aria-label", `Encoding ${number}: ${this.one.formula}`);
    this.remove.hidden = alone;
    this.drawSwatch();
  }

  drawSwatch() {
    put(this.swatch, swatch(this.encoding.look));
  }

  #typed(step) {
    if (this.one.formula === this.input.value) return; // the field was only left
    this.one.formula = this.input.value;
    this.one.set = {};
    this.changed(step);
  }

  #picked() {
    if (!this.pick.value) return;
    this.input.value = this.pick.value;
    this.pick.value = "";
    this.#typed(true);
  }

  update() {
    const { verdict } = this.encoding.parts;
    const known = verdict.data;
    this.element.classList.toggle("waiting", this.encoding.stale);
    this.error.hidden = !verdict.error;
    if (verdict.error) this.#showError(verdict.error);
    put(this.typeset, known ? (known.math ? math(known.math) : known.name) : null,
      known?.asked ? el("div", { class: "note" }, known.asked) : null);
    put(this.verdict, ...(known ? this.#verdict(known) : verdict.error ? [] : [el("span", { class: "faint" }, loading() ? "waits until Python is loaded…" : "being judged…")]));
    put(this.reach, ...(known ? this.#reach() : []));
    if (known || verdict.error) this.sliders.show(this.encoding.parameters);
  }

  #showError(error) {
    if (error === this.shownError) return; // a button under a finger stays there
    this.shownError = error;
    const later = /--from (\d+)/.exec(error.message);
    const start = () => {
      this.one.from = later[1];
      this.changed(true);
    };
    put(this.error, el("p", {}, error.message), error.pointer ? el("pre", {}, error.pointer) : null,
      later ? el("button", { type: "button", click: start }, `Start at t = ${later[1]}`) : null);
  }

  #verdict(known) {
    const { verdict, said } = known.verdict;
    const first = this.one.from === "0" ? null : el("span", { class: "faint" }, ` from t = ${this.one.from} on`);
    const many = { windowed: " one window serves the whole family", disperses: " attention disperses", neither: " neither windowed nor dispersing" }[this.encoding.answer];
    return [el("strong", { class: `badge ${verdict}` }, said), many ? el("span", {}, many) : null, known.parameters.length ? el("span", { class: "faint" }, ` with ${this.encoding.values}`) : null, first,
      known.learned ? el("div", { class: "note" }, known.learned) : null];
  }

  // In one line: how far it sees, or why that is not known.
  #reach() {
    const { encoding } = this;
    const row = encoding.rows.find((r) => r.epsilon === state.epsilon);
    const sum = encoding.parts.fields.data?.sum;
    if (!row) return [el("span", { class: "faint" }, `${encoding.noFieldAt(state.epsilon)}.`)];
    return [el("strong", { class: "number" }, `${row.tokens} tokens`), ` hold all but a share ${state.epsilon} of the weight${encoding.answer ? ", in the worst case over the family" : ""}`,
      sum ? el("span", { class: "faint" }, `; B = ${sum.replace("+/-", "±")}`) : null];
  }
}

// A piece of a curve with its marker.
export function swatch(number) {
  const style = look(number, colours());
  return svg("svg", { width: 30, height: 16, "aria-hidden": "true" },
    svg("path", { d: "M0 8h30", stroke: style.colour, "stroke-width": 2, "stroke-dasharray": style.dash || null, fill: "none" }),
    svg("path", { d: markerPath(style.marker, 15, 8, 4), stroke: style.colour, "stroke-width": 1.6, fill: "none" }));
}
