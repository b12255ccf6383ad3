// What is asked about several encodings, about a wanted reach, and about a study.

import { copy, el, put, steps } from "./dom.js";
import { Asker } from "./ask.js";
import { short } from "./axes.js";
import { Chart } from "./chart.js";
import { state } from "./state.js";

const byId = (id) => document.getElementById(id);

// Which of each two encodings sees further, and why.
export class Pairs {
  constructor() {
    this.asker = new Asker("compare", (found) => this.#show(found.pairs), (error) => this.#show([], error.message));
  }

  ask(encodings) {
    const judged = encodings.filter((e) => e.verdict && e.verdict !== "not-applicable");
    const known = judged.filter((e) => e.one.from === "0");
    byId("pairs").hidden = judged.length < 2;
    this.later = judged.length > known.length ? "Compared are encodings that begin at t = 0." : null;
    if (known.length < 2) return this.#show([]);
    const fields = known.flatMap(({ one }, i) => [["f", one.formula],
      ...Object.entries(one.set).map(([name, value]) => ["set", `${i}.${name}=${value}`])]);
    const key = JSON.stringify([fields, state.heads, state.head]);
    if (key === this.key) return undefined;
    this.key = key;
    put(byId("pairs-said"), el("p", { class: "note" }, "being compared…"));
    return this.asker.ask([...fields, ["heads", state.heads], ["head", state.head]]);
  }

  #show(pairs, error = null) {
    if (!pairs.length) this.key = null;
    put(byId("pairs-said"), ...pairs.map((pair) => el("details", {}, el("summary", {}, pair.sentence),
      steps(pair.steps), el("ul", {}, ...pair.turns.map((s) => el("li", {}, s))))),
    error ? el("p", { class: "error" }, error) : "", this.later ? el("p", { class: "note" }, this.later) : "");
  }
}

// The parameter that gives a wanted reach.
export class Design {
  constructor({ changed }) {
    this.changed = changed;
    this.asker = new Asker("design", (found) => this.#show(found), (error) => this.#fail(error));
    this.of = byId("design-of");
    this.parameter = byId("design-parameter");
    this.reach = byId("design-reach");
    this.epsilon = byId("design-epsilon");
    this.of.addEventListener("change", () => this.#parameters());
    byId("design-form").addEventListener("submit", (event) => {
      event.preventDefault();
      Object.assign(state, { of: this.of.value, parameter: this.parameter.value, reach: this.reach.value.trim(), within: this.epsilon.value.trim() });
      changed();
      this.ask();
    });
  }

  // Fill the choices from the encodings; a question that came with the address is asked at once.
  update(encodings) {
    this.encodings = encodings;
    const fresh = encodings.map(({ one }, i) => `${i + 1}. ${one.formula}`);
    if (fresh.join("\n") !== this.listed) {
      this.listed = fresh.join("\n");
      put(this.of, ...fresh.map((text, i) => el("option", { value: String(i) }, text)));
      this.of.value = encodings[Number(state.of)] ? state.of : "0";
    }
    this.#parameters();
  }

  read() {
    this.reach.value = state.reach || "4096";
    this.epsilon.value = state.within;
    this.waiting = Boolean(state.reach);
    put(byId("design-said"));
  }

  #parameters() {
    const names = (this.encodings[Number(this.of.value)]?.parameters ?? []).map((p) => p.name);
    if (names.join() !== this.names || !names.length) {
      this.names = names.join();
      put(this.parameter, ...names.map((name) => el("option", { value: name }, name)), ...(names.length ? [] : [el("option", { value: "" }, "none")]));
      if (names.includes(state.parameter)) this.parameter.value = state.parameter;
    }
    if (this.waiting && names.length) {
      this.waiting = false;
      this.ask();
    }
  }

  ask() {
    const encoding = this.encodings[Number(this.of.value)];
    if (!encoding) return undefined;
    this.encoding = encoding;
    if (encoding.one.from !== "0") return this.#fail(new Error(`a design begins at distance 0, and this encoding at ${encoding.one.from}: write t + ${encoding.one.from} in the place of t`));
    put(byId("design-said"), el("p", {}, "searching…"));
    const others = encoding.settings().filter(([name, value]) => name !== "from" && (name !== "set" || !value.startsWith(`0.${this.parameter.value}=`)));
    return this.asker.ask([...others, ["parameter", this.parameter.value], ["reach", this.reach.value.trim()], ["epsilon", this.epsilon.value.trim()]]);
  }

  #show(found) {
    const use = () => {
      this.encoding.one.set[found.parameter] = found.value;
      this.changed(true);
    };
    const range = Math.abs(found.high - found.low) > 0 ? ` (any value from about ${short10(found.low)} to ${short10(found.high)} does)` : "";
    put(byId("design-said"), 
      el("p", {}, el("strong", {}, `${found.parameter} = ${found.value}`), ` gives a receptive field of exactly ${found.tokens} tokens at epsilon ${found.epsilon}${range}; proven.`),
      el("div", { class: "buttons" }, el("button", { type: "button", click: use }, "Use this value"),
        el("button", { type: "button", click: (e) => copy(found.code.command, e.target) }, "Copy command"),
        el("button", { type: "button", click: (e) => copy(found.code.python, e.target) }, "Copy Python")));
  }

  #fail(error) {
    put(byId("design-said"), el("p", { class: "error" }, error.message));
  }
}

function short10(number) {
  return String(Number(number.toPrecision(6)));
}

// Perplexity by length of every run in a study folder.
export class Study {
  constructor(runs, changed) {
    if (!runs) return;
    byId("study").hidden = false;
    this.runs = runs;
    this.hidden = new Set();
    this.chart = new Chart("study");
    byId("study-figure").append(this.chart.element);
    const choice = (name, values) => {
      const select = el("select", { id: `study-${name}`, change: () => { state[name] = select.value; changed(); this.draw(); } },
        ...values.map((v) => el("option", { value: v }, v)));
      return el("div", { class: "setting small" }, el("label", { for: select.id }, name), select);
    };
    const unique = (values) => [...new Set(values)];
    this.corpora = unique(runs.map((r) => r.corpus));
    this.protocols = unique(runs.flatMap((r) => Object.keys(r.perplexity)));
    this.encodings = unique(runs.map((r) => r.encoding));
    const boxes = this.encodings.map((name) => el("label", { class: "box" }, el("input", { type: "checkbox", checked: true,
      change: (e) => { this.hidden[e.target.checked ? "delete" : "add"](name); this.draw(); } }), name));
    byId("study-choices").append(choice("corpus", this.corpora), choice("protocol", this.protocols),
      el("fieldset", {}, el("legend", {}, "encodings"), ...boxes));
  }

  draw() {
    if (!this.runs) return;
    const chosen = (name, values) => {
      const value = values.includes(state[name]) ? state[name] : values[0];
      byId(`study-${name}`).value = value ?? "";
      return value;
    };
    const corpus = chosen("corpus", this.corpora), protocol = chosen("protocol", this.protocols);
    const here = this.runs.filter((r) => r.corpus === corpus && r.perplexity[protocol]);
    const series = this.encodings.map((name, look) => ({ name, look })).filter(({ name }) => !this.hidden.has(name)).map(({ name, look }) => {
      const own = here.filter((r) => r.encoding === name);
      const lengths = [...new Set(own.flatMap((r) => r.lengths))].sort((a, b) => a - b);
      const points = lengths.map((n) => {
        const found = own.map((r) => r.perplexity[protocol][r.lengths.indexOf(n)]).filter((v) => v !== null && v !== undefined);
        const mean = found.length ? found.reduce((a, b) => a + b) / found.length : null;
        return [n, mean, mean === null ? `not measured at ${n}` : `${short(mean)} at ${n} tokens`];
      });
      return { label: `${name} (${own.length === 1 ? "1 seed" : `mean of ${own.length} seeds`})`, look, points };
    }).filter((s) => s.points.length);
    const trained = [...new Set(here.map((r) => r.training_length))];
    const lengths = [...new Set(series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
    const last = lengths[lengths.length - 1];
    const kept = []; // labels far enough from each other on a logarithmic axis, the first and the last among them
    for (const n of lengths) if (n === last || !kept.length || (n >= 1.5 * kept[kept.length - 1] && last >= 1.4 * n)) kept.push(n);
    const all = series.flatMap((s) => s.points.map((p) => p[1])).filter((v) => v > 0);
    const wide = Math.max(...all) > 4 * Math.min(...all);
    this.chart.update({
      title: `Perplexity on ${corpus}, ${protocol}; trained on ${trained.join(", ")} tokens`, empty: "no encoding is chosen",
      hint: "Move over the figure, or focus it and press ← →, to read values.",
      x: { kind: "log", label: "length in tokens", low: lengths[0] ?? 1, high: lengths[lengths.length - 1] ?? 10,
        ticks: kept.map((n) => ({ value: n, text: String(n) })) },
      y: { kind: wide ? "log" : "linear", label: "perplexity" }, series,
    });
  }
}
