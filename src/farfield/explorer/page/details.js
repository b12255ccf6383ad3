// The lower part of an encoding: proof, receptive fields, window, heat map, all heads, and the same in a terminal.

import { ask } from "./backend.js";
import { copy, el, put, say, steps } from "./dom.js";
import { swatch } from "./entry.js";
import { heatMap } from "./heat.js";
import { colours } from "./looks.js";
import { download, saveButtons } from "./save.js";
import { state } from "./state.js";

let counted = 0;

export class Details {
  // changed(step): the state has changed
  constructor(encoding, changed) {
    Object.assign(this, { encoding, shown: {}, id: `details-${(counted += 1)}` });
    const part = (name) => { this[name] = el("div", { class: name }); return this[name]; };
    const fold = (open, ...inside) => el("details", { class: "proof", open, hidden: true }, ...inside);
    this.general = fold(false, (this.generalSaid = el("summary")), part("generalSteps"));
    this.proof = fold(true, (this.proofName = el("summary")), part("steps"));
    this.allHeads = el("details", { toggle: () => { if (this.allHeads.open) encoding.want("heads"); } }, el("summary", {}, "All heads"), part("headsPlace"));
    this.code = el("div", { class: "code" }, part("copies"), el("details", {}, el("summary", {}, "The same in a terminal and in Python"), part("lines")));
    this.copies.classList.add("buttons");
    this.scale = el("select", { id: `${this.id}-scale`, change: () => { state.heat = this.scale.value; changed(true); } },
      el("option", { value: "linear" }, "linear"), el("option", { value: "log" }, "logarithmic"));
    this.heat = el("figure", { class: "heat" }, part("map"), el("div", { class: "under" },
      el("span", { class: "setting small" }, el("label", { for: this.scale.id }, "heat map"), this.scale),
      saveButtons("heat-map", () => heatMap(encoding.parts.drawn.data.heat, state.heat, 400, colours(false)), () => heatCsv(encoding))));
    new ResizeObserver(() => this.drawHeat()).observe(this.map);
    this.from = el("input", { type: "text", id: `${this.id}-from`, inputmode: "numeric", size: "4", change: () => {
      encoding.one.from = this.from.value.trim() || "0";
      changed(true);
    } });
    this.assume = el("input", { type: "text", id: `${this.id}-assume`, size: "18", maxlength: "200", placeholder: "a > 0, b > 0", spellcheck: "false", change: () => {
      encoding.one.assume = this.assume.value.trim();
      changed(true);
    } });
    this.assumed = el("div", { class: "from" }, el("label", { for: this.assume.id }, "assume (--assume)"), this.assume, part("assumeWrong"));
    this.element = el("article", {}, part("title"), this.general, this.assumed, this.proof, part("table"), part("window"), this.heat, this.allHeads, this.code,
      el("div", { class: "from" }, el("label", { for: this.from.id }, "first distance (--from)"), this.from));
  }

  update() {
    const { encoding } = this;
    const { verdict, condition, code } = encoding.parts;
    const known = verdict.data, bias = Boolean(known?.math);
    this.element.classList.toggle("waiting", encoding.stale);
    this.element.setAttribute("aria-label", `Proofs and numbers of ${encoding.one.formula}`);
    put(this.title, swatch(encoding.look), el("h3", {}, encoding.label),
      known ? el("p", { class: "note" }, [known.source, known.note].filter(Boolean).join("; ")) : null);
    this.proof.hidden = !known;
    if (known && this.#fresh("proof", known)) this.#showProof(known.verdict);
    const general = known && condition.data?.verdict;
    this.general.hidden = !general;
    if (general && this.#fresh("general", general)) {
      this.generalSaid.textContent = `In general: ${general.said}`;
      put(this.generalSteps, steps(general.steps));
    }
    this.assumed.hidden = !known?.parameters?.length;
    this.assumeWrong.textContent = condition.error?.message ?? "";
    if (document.activeElement !== this.assume) this.assume.value = encoding.one.assume;
    for (const place of [this.table, this.window, this.heat, this.allHeads]) place.hidden = !bias;
    if (bias) this.#showNumbers();
    else for (const place of [this.table, this.window, this.map]) put(place);
    this.code.hidden = !code.data;
    if (code.data && this.#fresh("code", code.data)) this.#showCode(code.data);
    if (document.activeElement !== this.from) this.from.value = encoding.one.from;
  }

  // Whether something was not shown before; what was is left alone, with whatever a person selected in it.
  #fresh(name, data) {
    const fresh = this.shown[name] !== data;
    this.shown[name] = data;
    return fresh;
  }

  #showProof(verdict) {
    this.proofName.textContent = verdict.verdict === "converges" || verdict.verdict === "diverges" ? "Proof" : "Why";
    const latex = el("button", { type: "button", click: (e) => copy(verdict.latex, e.target) }, "Copy as LaTeX");
    put(this.steps, steps(verdict.steps), el("div", { class: "buttons" }, latex, coqButton(JSON.parse(this.encoding.parts.verdict.key))));
  }

  #showNumbers() {
    const { encoding } = this;
    const { fields, window, drawn } = encoding.parts;
    const row = (e) => el("tr", { class: e === state.epsilon ? "chosen" : null }, el("th", { scope: "row" }, e),
      el("td", { title: encoding.rows.find((r) => r.epsilon === e)?.exact ?? null }, encoding.field(e)));
    const notes = [fields.error && (encoding.rows.length || fields.error.late) ? fields.error.message : null, encoding.rows.length ? fields.data?.why : null, fields.data?.law ? `as epsilon goes to 0: ${fields.data.law}` : null];
    put(this.table, encoding.rows.length
      ? el("table", {}, el("caption", {}, `Receptive field in tokens, ${fields.data?.worst ? `in the worst case over the family, ` : ""}proven`),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "epsilon"), el("th", { scope: "col" }, "tokens"))),
        el("tbody", {}, ...(fields.data?.table ?? []).map(row)))
      : el("p", { class: "note" }, `${encoding.noField}.`),
    ...notes.filter(Boolean).map((note) => el("p", { class: "note" }, note)),
    encoding.rows.length ? el("div", { class: "save" }, el("button", { type: "button",
      click: (e) => download(new Blob([fieldCsv(encoding)], { type: "text/csv" }), "farfield-receptive-fields.csv", e.target) }, "CSV")) : null);
    const found = window.data;
    put(this.window, el("h3", {}, "Window by certificate"), el("p", {}, found?.tokens ? el("strong", {}, `${found.tokens} tokens `) : null,
      found?.said ?? window.error?.message ?? "being computed…"));
    this.heat.hidden = !drawn.data;
    if (drawn.error) put(this.map, el("p", { class: "note" }, drawn.error.message));
    this.drawHeat();
    if (encoding.wanted.has("heads")) this.#showHeads();
  }

  drawHeat() {
    this.scale.value = state.heat === "log" ? "log" : "linear";
    const { data } = this.encoding.parts.drawn;
    const width = Math.min(400, Math.round(this.map.clientWidth));
    if (data && width > 100) put(this.map, heatMap(data.heat, this.scale.value, width));
  }

  #showHeads() {
    const { data, error, status } = this.encoding.parts.heads;
    if (!data) return put(this.headsPlace, el("p", { class: "note" }, error?.message ?? "being computed…"));
    const cells = (row) => [row.sum || "–", ...data.epsilons.map((e, i) => row.tokens[i] ?? (row.why ? "not decided" : "none"))];
    const after = error?.message ?? (status === "asking" ? "further heads are being computed…" : null);
    return put(this.headsPlace, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All heads" }, el("table", {},
      el("thead", {}, el("tr", {}, ...["head", "parameters", "verdict", "B", ...data.epsilons].map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...data.rows.map((row) => el("tr", {}, el("th", { scope: "row" }, row.head),
        el("td", {}, Object.entries(row.parameters).map(([n, v]) => `${n} = ${v}`).join(", ")),
        el("td", {}, row.horizon ? `${row.verdict}, looks convergent up to ${row.horizon}` : row.verdict),
        ...cells(row).map((c) => el("td", {}, c))))))), after ? el("p", { class: "note" }, after) : null);
  }

  #showCode(found) {
    const command = [found.command, found.window].filter(Boolean).join("\n");
    const button = (what, text) => el("button", { type: "button", click: (e) => copy(text, e.target) }, `Copy ${what}`);
    put(this.copies, button("command", command), button("Python", found.python));
    put(this.lines, el("pre", { tabindex: "0" }, command), el("pre", { tabindex: "0" }, found.python));
  }
}

// The proof as a file for Coq, asked for when somebody wants it; where there is none, a sentence takes the button's place.
function coqButton(fields) {
  const tell = (sentence, ...before) => { put(place, ...before, el("p", { class: "note" }, sentence)); say(sentence); };
  const write = async () => {
    button.disabled = true;
    try {
      const { file, text, why } = await ask("coq", fields);
      if (!place.isConnected) return; // another proof is shown by now
      if (why) tell(why);
      else download(new Blob([text], { type: "text/plain" }), file, button);
    } catch (error) {
      tell(error.message, button);
    }
    button.disabled = false;
  };
  const button = el("button", { type: "button", click: write }, "Coq file");
  const place = el("div", { class: "coq" }, button);
  return place;
}

function fieldCsv(encoding) {
  return ["epsilon,tokens", ...encoding.rows.map((r) => `${r.epsilon},${r.exact ?? r.tokens}`)].join("\n") + "\n";
}

function heatCsv(encoding) {
  const { values, stride } = encoding.parts.drawn.data.heat;
  return ["distance,weight", ...values.map((v, i) => `${i * stride},${v ?? ""}`)].join("\n") + "\n";
}
