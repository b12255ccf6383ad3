// One encoding: its formula, its parameters, and everything that is proven or drawn of it.

import { copy, el, math, put, shorten, svg } from "./dom.js";
import { Asker } from "./ask.js";
import { heatMap } from "./heat.js";
import { colours, look, markerPath } from "./looks.js";
import { saveButtons } from "./save.js";
import { Sliders } from "./sliders.js";
import { state } from "./state.js";

let counted = 0;

export class Card {
  // changed(step): the state has changed; answered(): there is a new answer; removed(card)
  constructor(one, { zoo, changed, answered, removed }) {
    Object.assign(this, { one, changed, answered, id: `card-${(counted += 1)}`, answer: null });
    this.asker = new Asker("encoding", (found) => this.#show(found), (error) => this.#fail(error));
    this.condition = new Asker("condition", (found) => this.#showCondition(found), () => this.#showCondition({}));
    this.heads = new Asker("heads", (found) => this.#showHeads(found), (error) => { this.headsPlace.textContent = error.message; });
    this.windowed = new Asker("window", (found) => this.#showWindow(found), () => {});
    this.#build(zoo, removed);
  }

  #build(zoo, removed) {
    this.swatch = el("span", { class: "swatch" });
    this.input = el("input", { type: "text", id: `${this.id}-formula`, list: "zoo", spellcheck: "false", autocomplete: "off",
      autocapitalize: "off", maxlength: "1000", input: () => this.#typed(), change: () => this.#typed(true) });
    this.input.value = this.one.formula;
    this.pick = el("select", { id: `${this.id}-zoo`, "aria-label": "Pick from the zoo", change: () => this.#picked() },
      el("option", { value: "" }, "zoo…"), ...zoo.map((e) => el("option", { value: e.name }, e.name)));
    this.from = el("input", { type: "text", id: `${this.id}-from`, inputmode: "numeric", size: "4", change: () => {
      this.one.from = this.from.value.trim() || "0";
      this.changed(true);
    } });
    this.from.value = this.one.from;
    const part = (name) => { this[name] = el("div", { class: name }); return this[name]; };
    this.sliders = new Sliders(this.id, this.one, () => this.changed(false));
    this.proof = el("details", { class: "proof", open: true }, (this.proofName = el("summary")), part("steps"));
    this.general = el("details", { class: "proof", hidden: true }, (this.generalSaid = el("summary")), part("generalSteps"));
    this.allHeads = el("details", { toggle: () => this.#askHeads() }, el("summary", {}, "All heads"), part("headsPlace"));
    this.code = el("div", { class: "code" }, part("copies"), el("details", {}, el("summary", {}, "The same in a terminal and in Python"), part("lines")));
    this.copies.classList.add("buttons");
    this.heat = el("figure", { class: "heat" }, part("map"), saveButtons("heat-map",
      () => heatMap(this.answer, state.heat, 400, colours(false))));
    new ResizeObserver(() => this.drawHeat()).observe(this.map);
    this.results = el("div", { class: "results" }, part("typeset"), part("verdict"), part("sum"),
      this.sliders.element, this.general, this.proof, part("table"), part("window"), part("draws"), this.heat, this.allHeads, this.code);
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    this.element = el("article", { id: this.id },
      el("div", { class: "pick" }, this.swatch,
        el("label", { for: this.input.id, class: "unseen" }, "Formula of the bias r(t), or a name"), this.input, this.pick,
        el("button", { type: "button", class: "remove", "aria-label": "Remove this encoding", title: "Remove",
          click: () => removed(this) }, "×")),
      this.error, this.results,
      el("div", { class: "from" }, el("label", { for: this.from.id }, "first distance (--from)"), this.from));
  }

  place(index, alone) {
    this.index = index;
    this.element.setAttribute("aria-label", `Encoding ${index + 1}: ${this.one.formula}`);
    this.element.querySelector(".remove").hidden = alone;
    this.drawSwatch();
    this.drawHeat();
  }

  drawSwatch() {
    const style = look(this.index, colours());
    put(this.swatch, svg("svg", { width: 30, height: 16, "aria-hidden": "true" },
      svg("path", { d: "M0 8h30", stroke: style.colour, "stroke-width": 2, "stroke-dasharray": style.dash || null, fill: "none" }),
      svg("path", { d: markerPath(style.marker, 15, 8, 4), stroke: style.colour, "stroke-width": 1.6, fill: "none" })));
  }

  fields() {
    return [...this.settings(), ["from", this.one.from], ["context", state.context], ["epsilon", state.epsilon], ["bound", state.bound]];
  }

  settings() {
    return [["f", this.one.formula], ...Object.entries(this.one.set).map(([name, value]) => ["set", `0.${name}=${value}`]),
      ["heads", state.heads], ["head", state.head]];
  }

  ask() {
    this.element.classList.add("waiting");
    this.asker.ask(this.fields());
    const key = `${this.one.formula}\n${this.one.from}`;
    if (key !== this.asked) this.condition.ask([["f", this.one.formula], ["from", this.one.from]]);
    this.asked = key;
    if (this.allHeads.open) this.#askHeads();
  }

  stop() {
    for (const asker of [this.asker, this.condition, this.heads, this.windowed]) asker.stop();
  }

  #typed(step = false) {
    if (this.one.formula !== this.input.value) {
      this.one.formula = this.input.value;
      this.one.set = {};
      this.sliders.one = this.one;
    }
    this.changed(step);
  }

  #picked() {
    if (!this.pick.value) return;
    this.input.value = this.pick.value;
    this.pick.value = "";
    this.#typed(true);
  }

  #fail(error) {
    this.answer = null;
    this.element.classList.remove("waiting");
    this.error.hidden = false;
    this.results.hidden = true;
    put(this.error, el("p", {}, error.message), error.pointer ? el("pre", {}, error.pointer) : null);
    this.answered();
  }

  #show(found) {
    this.answer = found;
    this.element.classList.remove("waiting");
    this.error.hidden = true;
    this.results.hidden = false;
    const bias = Boolean(found.math);
    put(this.typeset, bias ? math(found.math) : el("span", {}, found.name),
      el("p", { class: "source" }, [found.source, found.note].filter(Boolean).join("; ")));
    const { verdict, said } = found.verdict;
    put(this.verdict, el("strong", { class: `badge ${verdict}` }, said),
      found.bound_math && found.parameters.length ? el("span", { class: "with" }, ` with ${given(found)}`) : null);
    put(this.sum, ...(found.sum ? [el("span", { class: "name" }, "sum of the weights "), "B = ", el("span", { class: "number" },
      found.sum.replace("+/-", "±"))] : bias ? [el("span", { class: "name" }, verdict === "diverges" ? "no finite sum B" : "no sum B is known")] : []));
    this.sliders.show(found.parameters);
    this.proofName.textContent = verdict === "converges" || verdict === "diverges" ? "Proof" : "Why";
    put(this.steps, steps(found.verdict.steps), el("button", { type: "button", click: (e) => copy(found.verdict.latex, e.target) }, "Copy as LaTeX"));
    for (const part of [this.table, this.window, this.draws, this.heat, this.allHeads]) part.hidden = !bias;
    if (bias) this.#showNumbers(found);
    this.#showCode(found);
    this.answered();
  }

  #showNumbers(found) {
    const nothing = found.verdict.verdict === "diverges" ? "none" : "not decided";
    const row = (r) => el("tr", { class: r.epsilon === state.epsilon ? "chosen" : null }, el("th", { scope: "row" }, r.epsilon),
      el("td", { title: r.exact || null }, r.tokens ?? nothing), el("td", { class: "claim" }, r.draw ?? "–"));
    put(this.table, el("table", {}, el("caption", {}, "Receptive field in tokens"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "epsilon"), el("th", { scope: "col" }, "proven"),
        el("th", { scope: "col", class: "claim" }, `draw() of ${found.heat.context}`))), el("tbody", {}, ...found.table.map(row))),
      ...found.notes.map((note) => el("p", { class: "note" }, note)));
    put(this.draws, el("h3", {}, "What the paper’s draw() would have claimed"), el("p", {}, found.said));
    this.#showWindow(found.window);
    if (found.window.ask) this.windowed.ask(this.fields());
    this.drawHeat();
  }

  #showWindow(found) {
    put(this.window, el("h3", {}, "Window by certificate"),
      el("p", {}, found.tokens ? el("strong", {}, `${found.tokens} tokens`) : null, found.tokens ? " " : "", found.said));
  }

  drawHeat() {
    const width = Math.min(400, Math.round(this.map.clientWidth));
    if (this.answer?.heat && width > 100) put(this.map, heatMap(this.answer, state.heat, width));
  }

  #showCondition(found) {
    const verdict = found.verdict;
    this.general.hidden = !verdict;
    if (!verdict) return;
    this.generalSaid.textContent = `In general: ${verdict.said}`;
    put(this.generalSteps, steps(verdict.steps));
  }

  #askHeads() {
    if (this.allHeads.open) this.heads.ask([...this.settings().filter(([name]) => name !== "head"), ["from", this.one.from]]);
  }

  #showHeads(found) {
    const cells = (row) => [row.sum || "–", ...found.epsilons.map((e, i) => row.tokens[i] ?? "none")];
    put(this.headsPlace, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All heads" }, el("table", {},
      el("thead", {}, el("tr", {}, ...["head", "parameters", "verdict", "B", ...found.epsilons].map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...found.rows.map((row) => el("tr", {}, el("th", { scope: "row" }, row.head),
        el("td", {}, Object.entries(row.parameters).map(([n, v]) => `${n} = ${v}`).join(", ")),
        el("td", {}, row.horizon ? `${row.verdict}, looks convergent up to ${row.horizon}` : row.verdict),
        ...cells(row).map((c) => el("td", {}, c))))))));
  }

  #showCode(found) {
    const command = [found.code.command, found.code.window].filter(Boolean).join("\n");
    const button = (what, text) => el("button", { type: "button", click: (e) => copy(text, e.target) }, `Copy ${what}`);
    put(this.copies, button("command", command), button("Python", found.code.python));
    put(this.lines, el("pre", { tabindex: "0" }, command), el("pre", { tabindex: "0" }, found.code.python));
  }

  get label() {
    if (!this.answer) return this.one.formula;
    return shorten(this.answer.name, 60) + (this.answer.parameters.length ? `, ${given(this.answer)}` : "");
  }
}

function given(found) {
  return found.parameters.map((p) => `${p.name} = ${p.text}`).join(", ");
}

function steps(list) {
  return el("ol", {}, ...list.map((step) => el("li", {}, el("div", { class: "step" }, ...step.map((p) => (p.math ? math(p.math) : p.words))))));
}
