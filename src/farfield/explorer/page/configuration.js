// A pasted config.json: how far the model looks, layer by layer, as `farfield inspect` says it.

import { Asker } from "./ask.js";
import { copy, el, put, say, shorten, svg } from "./dom.js";
import { colours } from "./looks.js";
import { saveButtons } from "./save.js";
import { state } from "./state.js";

const byId = (id) => document.getElementById(id);
const FILLS = { windowed: 1, disperses: 6, neither: 2, undecided: 4 }; // colours by what is proven
const TALLEST = 560; // pixels that all bars may take

export class Configuration {
  // changed(): the state has changed
  constructor(changed) {
    this.asker = new Asker("inspect", (found) => this.#show(found), (error) => this.#fail(error));
    this.text = byId("config-text");
    this.bound = byId("config-bound");
    const ask = () => {
      Object.assign(state, { config: this.text.value, logits: this.bound.value.trim() });
      changed();
      this.ask();
    };
    byId("config-form").addEventListener("submit", (event) => {
      event.preventDefault();
      ask();
    });
    this.text.addEventListener("paste", () => setTimeout(ask, 0));
    byId("config-file").addEventListener("change", async (event) => {
      const [file] = event.target.files;
      if (!file) return;
      this.text.value = file.size > 4e6 ? "" : await file.text();
      if (file.size > 4e6) this.#fail(new Error(`${file.name} is longer than any configuration`));
      else ask();
    });
  }

  // What came with the address is asked at once.
  read() {
    this.text.value = state.config;
    this.bound.value = state.logits;
    put(byId("config-said"));
    if (state.config) {
      byId("config").open = true;
      this.ask();
    }
  }

  ask() {
    byId("config-said").classList.add("waiting");
    say("The configuration is being read");
    this.asker.ask([["config", this.text.value], ["epsilon", state.epsilon], ["bound", this.bound.value.trim()]]);
  }

  #fail(error) {
    byId("config-said").classList.remove("waiting");
    put(byId("config-said"), el("p", { class: "error", role: "alert" }, error.message));
  }

  #show(found) {
    this.found = found;
    byId("config-said").classList.remove("waiting");
    const notes = found.notes.map((note) => el("li", {}, `${note}.`));
    const parts = found.known ? this.#known(found) : [table("Its fields", ["field", "value"], found.fields)];
    put(byId("config-said"), el("p", {}, el("strong", {}, found.sentence)), ...parts,
      notes.length ? el("h3", {}, "Notes") : null, notes.length ? el("ul", {}, ...notes) : null);
    say(found.sentence);
    this.draw();
  }

  #known(found) {
    this.place = el("div");
    return [table("Layers", found.layers.headings, found.layers.rows), ...found.sentences.map((words) => el("p", {}, words)),
      el("figure", {}, this.place, saveButtons("layers", () => bars(found.figure, 700, colours(false)), () => csv(found.figure))),
      table(found.cache.title, found.cache.headings, found.cache.rows),
      el("div", { class: "buttons" }, el("button", { type: "button", click: (e) => copy(found.command, e.target) }, "Copy command"))];
  }

  draw() {
    if (!this.found?.known || !this.place) return;
    const width = Math.min(700, Math.round(this.place.clientWidth) || 700);
    put(this.place, bars(this.found.figure, width));
  }
}

function table(title, headings, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, el("table", { class: "left" }, el("caption", {}, title),
    el("thead", {}, el("tr", {}, ...headings.map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, shorten(cell, 200))))))));
}

// A bar for each layer, on a logarithmic axis of tokens; layers that see the whole text are hatched by lighter colour.
function bars({ whole, trained, bars: layers }, width, theme = colours()) {
  const left = 52, right = 22, top = 30, tall = Math.min(16, TALLEST / layers.length);
  const plot = tall * layers.length, end = whole * 1.3;
  const labels = [...new Map(layers.map(([, , kind, label]) => [label, kind])).entries()];
  const height = top + plot + 44 + 18 * (labels.length + (trained ? 1 : 0));
  const x = (tokens) => left + (Math.log(Math.max(1, tokens)) / Math.log(end)) * (width - left - right);
  const style = (kind, label) => ({ fill: theme.lines[FILLS[kind]], "fill-opacity": label.endsWith("window") ? 1 : 0.35 });
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "font-family": "system-ui, sans-serif",
    "font-size": 12, fill: theme.ink, "aria-label": `How many tokens each of ${layers.length} layers sees; the whole text has ${whole}` },
  svg("rect", { width, height, fill: theme.paper }),
  svg("text", { x: 8, y: 18, "font-weight": 600, "font-size": 13 }, "Tokens that each layer sees"));
  const powers = [...Array(Math.floor(Math.log10(end)) + 1).keys()];
  for (const power of powers) {
    const at = x(10 ** power);
    root.append(svg("line", { x1: at, x2: at, y1: top, y2: top + plot, stroke: theme.grid }),
      svg("text", { x: at, y: top + plot + 16, "text-anchor": "middle", fill: theme.faint }, power < 4 ? String(10 ** power) : `${10 ** (power % 3)}${["", "k", "M", "G"][Math.floor(power / 3)]}`));
  }
  for (const { first, last, tokens, kind, label } of runs(layers, tall < 3)) { // bars too thin to see stand together
    const words = first === last ? `layer ${first}` : `layers ${first} to ${last}`;
    root.append(svg("rect", { x: left, y: top + (first - 1) * tall, width: Math.max(1, x(tokens) - left),
      height: (last - first + 0.8) * tall, ...style(kind, label) }, svg("title", {}, `${words}: ${tokens} tokens, ${label}`)));
  }
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((n) => n * tall >= 14) ?? 1000;
  for (let n = 1; n <= layers.length; n += every) {
    root.append(svg("text", { x: left - 6, y: top + (n - 0.5) * tall + 3, "text-anchor": "end", fill: theme.faint, "font-size": 10 }, n));
  }
  root.append(svg("text", { transform: `translate(12 ${top + plot / 2}) rotate(-90)`, "text-anchor": "middle" }, "layer"),
    svg("text", { x: (left + width - right) / 2, y: top + plot + 32, "text-anchor": "middle" }, "tokens"));
  let row = top + plot + 50;
  for (const [label, kind] of labels) {
    root.append(svg("rect", { x: left, y: row - 10, width: 24, height: 11, ...style(kind, label) }), svg("text", { x: left + 32, y: row }, label));
    row += 18;
  }
  if (trained) {
    const line = { stroke: theme.lines[2], "stroke-width": 1.6, "stroke-dasharray": "5 3" };
    root.append(svg("line", { x1: x(trained), x2: x(trained), y1: top - 4, y2: top + plot, ...line }),
      svg("line", { x1: left, x2: left + 24, y1: row - 4, y2: row - 4, ...line }), svg("text", { x: left + 32, y: row }, `training length: ${trained} tokens`));
  }
  return root;
}

// Layers one by one, or joined where neighbours are alike.
function runs(layers, joined) {
  const out = [];
  for (const [number, tokens, kind, label] of layers) {
    const before = out[out.length - 1];
    if (joined && before && before.tokens === tokens && before.label === label) before.last = number;
    else out.push({ first: number, last: number, tokens, kind, label });
  }
  return out;
}

function csv({ bars: layers }) {
  return ["layer,tokens,answer", ...layers.map(([n, tokens, kind]) => `${n},${tokens},${kind}`)].join("\n") + "\n";
}
