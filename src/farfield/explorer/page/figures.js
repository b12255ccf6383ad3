// The figures that show every encoding at once.

import { short } from "./axes.js";
import { Chart } from "./chart.js";
import { saveButtons } from "./save.js";

const HINT = "Move over the figure, or focus it and press ← →, to read values.";

export class Figures {
  constructor(place) {
    this.charts = Object.fromEntries(["receptive-field", "partial-sums", "weights", "draw"].map((name) => [name, new Chart(name, saveButtons)]));
    place.append(...Object.values(this.charts).map((chart) => chart.element));
  }

  draw() {
    for (const chart of Object.values(this.charts)) chart.draw();
  }

  update(cards, context) {
    const known = cards.map((card, look) => ({ card, look, answer: card.answer })).filter(({ answer }) => answer?.sums);
    const series = (points, level = () => null) => known.map(({ card, look, answer }) => ({
      label: card.label, look, points: points(answer), level: level(answer),
    }));
    this.charts["receptive-field"].update({
      title: "Receptive field, exact", hint: HINT, empty: "no sum converges, so there is no receptive field",
      x: { kind: "log", label: "epsilon", reverse: true, low: 1e-12, high: 1 }, y: { kind: "power", label: "TRF in tokens" },
      series: series((a) => a.curve.epsilons.map((e, i) => [Number(e), a.curve.log10[i], `${a.curve.tokens[i]} tokens at ${e}`]))
        .map((s) => (s.points.length ? s : { ...s, label: `none: ${s.label}` })),
    });
    this.charts["partial-sums"].update({
      title: "Partial sums of the weights; dotted: the sum B", hint: HINT,
      x: { kind: "log", label: "tokens" }, y: { kind: "log", label: "sum" },
      series: series((a) => pairs(a.sums.tokens, a.sums.values, (n, v) => `${short(v)} after ${n} tokens`), (a) => a.total),
    });
    this.charts.weights.update({
      title: "Weight by distance", hint: HINT,
      x: { kind: "log", label: "distance t + 1" }, y: { kind: "log", label: "b(t) = exp(r(t))", ...floor(known) },
      series: series((a) => pairs(a.weights.distances, a.weights.values, (t, v) => `${short(v)} at distance ${t}`).map(([t, ...rest]) => [t + 1, ...rest])),
    });
    this.charts.draw.update({
      title: `What draw() would plot, given ${context} weights`, hint: HINT, empty: "draw() gives nothing",
      x: { label: `claimed tokens / ${context}`, low: 0, high: 1 }, y: { label: "epsilon", low: 0, high: 1 },
      series: series((a) => (a.draw ? a.draw.curve.share.map((s, i) => [s, a.draw.curve.epsilons[i],
        `${Math.round(s * a.draw.window)} tokens at epsilon ${short(a.draw.curve.epsilons[i])}`]) : [])),
    });
  }
}

function pairs(xs, ys, words) {
  return xs.map((x, i) => [x, ys[i] > 0 ? ys[i] : null, ys[i] === null ? "not a number" : words(x, ys[i])]);
}

// Weights fall below anything: the figure ends at a ten-thousand-millionth.
function floor(known) {
  const all = known.flatMap(({ answer }) => answer.weights.values).filter((v) => v > 0);
  return Math.min(...all) < 1e-10 ? { low: 1e-10 } : {};
}
