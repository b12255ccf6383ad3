// The figures that show every encoding at once, one legend for all of them, and what draw() would have claimed.

import { short } from "./axes.js";
import { Chart } from "./chart.js";
import { el, put } from "./dom.js";
import { swatch } from "./entry.js";
import { state } from "./state.js";

const HINT = "Move over it, or focus it and press ← →, to read values.";
const FIGURES = { "receptive-field": "Receptive field", "partial-sums": "Partial sums", weights: "Weights" };
const byId = (id) => document.getElementById(id);

export class Figures {
  // changed(): another figure or other curves were chosen
  constructor(changed) {
    this.changed = changed;
    this.charts = Object.fromEntries(Object.keys(FIGURES).map((name) => [name,
      new Chart(name, { legend: false, tall: (width) => (name === "receptive-field" && width > 420 ? 190 : 140) })]));
    byId("figures").append(...Object.values(this.charts).map((chart) => chart.element));
    this.tabs = Object.entries(FIGURES).map(([name, words]) => el("button", { type: "button", click: () => {
      state.figure = name;
      changed();
    } }, words));
    byId("tabs").append(...this.tabs);
    this.draws = new Chart("draw");
    byId("draw-figure").append(this.draws.element);
    byId("draw").addEventListener("toggle", () => changed());
  }

  draw() {
    for (const chart of [...Object.values(this.charts), this.draws]) chart.draw();
  }

  // On a small screen one figure is shown, the chosen one.
  #choose() {
    const chosen = FIGURES[state.figure] ? state.figure : "receptive-field";
    Object.keys(FIGURES).forEach((name, i) => {
      this.tabs[i].setAttribute("aria-pressed", String(name === chosen));
      this.charts[name].element.classList.toggle("chosen", name === chosen);
    });
  }

  #legend(encodings) {
    const box = (encoding) => el("label", { class: "box" }, el("input", { type: "checkbox", checked: !encoding.one.hidden,
      change: (event) => {
        encoding.one.hidden = !event.target.checked;
        this.changed();
      } }), swatch(encoding.look), encoding.label);
    const key = JSON.stringify(encodings.map((e) => [e.look, e.label, e.one.hidden]));
    if (key !== this.legendKey) put(byId("legend"), ...encodings.map(box));
    this.legendKey = key;
  }

  update(all) {
    this.#choose();
    this.#legend(all);
    const seen = all.filter((e) => !e.one.hidden);
    const empty = all.length && !seen.length ? "every curve is hidden" : undefined;
    const name = (e, of) => (e.answer ? `${e.label} (${of})` : e.label); // a bounded family is drawn by its bounds
    const many = (of) => (seen.some((e) => e.answer) ? `; of a bounded family its ${of}` : "");
    const series = (known, points, level = () => null, of = "upper bound") => known.map((e) => ({ label: name(e, of), look: e.look, points: points(e), level: level(e) }));
    const fields = seen.filter((e) => e.rows.some((r) => r.log10 !== null));
    this.charts["receptive-field"].update({
      title: `Receptive field in tokens, exact${many("worst case")}`, hint: HINT, empty,
      x: { kind: "log", label: "epsilon", reverse: true, low: 1e-12, high: 1 }, y: { kind: "power", label: "tokens" },
      series: series(fields, (e) => e.rows.filter((r) => r.log10 !== null).map((r) => [Number(fraction(r.epsilon)), r.log10, `${r.tokens} tokens at ${r.epsilon}`, r.exact]), undefined, "worst case"),
      absent: absent(seen.filter((e) => !fields.includes(e)), (e) => (e.rows.length ? "more tokens than 310 digits can count" : e.noField)),
    });
    const drawn = seen.filter((e) => e.parts.drawn.data);
    const never = (e) => e.parts.drawn.error || e.parts.verdict.error || e.verdict === "not-applicable";
    const missing = absent(seen.filter((e) => !e.parts.drawn.data && never(e)), (e) => e.parts.drawn.error?.message ?? e.noField);
    this.charts["partial-sums"].update({
      title: `Partial sums; dotted: the sum B${many("upper bound")}`, hint: HINT, empty,
      x: { kind: "log", label: "tokens" }, y: { kind: "log", label: "sum" }, absent: missing,
      series: series(drawn, (e) => pairs(e.parts.drawn.data.sums, "tokens", (n, v) => `${short(v)} after ${n} tokens`), (e) => e.parts.fields.data?.total ?? null),
    });
    this.charts.weights.update({
      title: `Weight by distance${many("upper bound")}`, hint: HINT, empty,
      x: { kind: "log", label: "distance t + 1" }, y: { kind: "log", label: "exp(r(t))", ...floor(drawn) }, absent: missing,
      series: series(drawn, (e) => pairs(e.parts.drawn.data.weights, "distances", (t, v) => `${short(v)} at distance ${t}`).map(([t, ...rest]) => [t + 1, ...rest])),
    });
    this.#draws(seen);
  }

  // What the paper's pseudocode gives: asked and shown only when somebody looks.
  #draws(seen) {
    if (!byId("draw").open) return;
    for (const e of seen) if (!e.wanted.has("claimed")) e.want("claimed");
    const known = seen.filter((e) => e.parts.claimed.data), claiming = known.filter((e) => e.parts.claimed.data.curve);
    this.draws.update({
      title: `What draw() would plot, given ${state.context} weights`, hint: HINT,
      x: { label: `claimed tokens / ${state.context}`, low: 0, high: 1 }, y: { label: "epsilon", low: 0, high: 1 },
      series: claiming.map((e) => {
        const { curve } = e.parts.claimed.data;
        return { label: e.label, look: e.look, points: curve.share.map((s, i) => [s, curve.epsilons[i],
          `${Math.round(s * Number(state.context))} tokens at epsilon ${short(curve.epsilons[i])}`]) };
      }),
      absent: absent(known.filter((e) => !claiming.includes(e)), () => `the first ${state.context} weights have no finite, positive sum`),
    });
    put(byId("draw-said"), el("p", { class: "note" }, `It divides by the sum of the ${state.context} weights that it is given, so it has an answer for every bias, also where none exists.`),
      el("ul", {}, ...seen.map((e) => el("li", {}, swatch(e.look), ` ${e.label}: ${claim(e)}`))));
  }
}

function absent(missing, why) {
  return missing.map((e) => ({ label: e.label, look: e.look, why: why(e) }));
}

function claim(encoding) {
  const { data, error } = encoding.parts.claimed;
  if (!data) return error?.message ?? (encoding.verdict && encoding.verdict !== "not-applicable" ? "being computed…" : encoding.noField);
  if (!data.curve) return "no number";
  const { claim: once, twice } = data;
  const said = `given ${state.context} weights it claims ${once} tokens at epsilon ${state.epsilon}; given twice as many, ${twice}`;
  const truth = encoding.rows.find((r) => r.epsilon === state.epsilon);
  if (truth?.exact === String(once)) return `${said}. That is the receptive field.`;
  return truth ? `${said}. The receptive field is ${truth.tokens}.` : `${said}. In truth: ${encoding.noFieldAt(state.epsilon)}.`;
}

function pairs(curve, xs, words) {
  return curve[xs].map((x, i) => {
    const y = curve.values[i];
    return [x, y > 0 ? y : null, y === null ? "beyond double precision" : words(x, y), y];
  });
}

// The number behind an epsilon as it was typed: 1/3 too.
function fraction(text) {
  const [a, b] = text.split("/");
  return b === undefined ? Number(a) : Number(a) / Number(b);
}

// Weights fall below anything: the figure ends at a ten-thousand-millionth.
function floor(drawn) {
  const all = drawn.flatMap((e) => e.parts.drawn.data.weights.values).filter((v) => v > 0);
  return Math.min(...all) < 1e-10 ? { low: 1e-10 } : {};
}
