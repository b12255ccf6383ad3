// One encoding: what is known of it, what is being asked, and, where nothing is known, why.

import { Asker } from "./ask.js";
import { shorten } from "./dom.js";
import { state } from "./state.js";

const PARTS = ["drawn", "fields", "window", "condition", "code"]; // asked when the verdict is there
const FOLDED = ["heads", "claimed"]; // asked when somebody looks
const NONE_OF_FAMILY = { // of a bounded family, whose upper bound decides
  disperses: "attention disperses over the row, whatever its members choose, so there is no receptive field",
  neither: "no window serves the family, though its attention need not disperse, so there is no receptive field",
  undecided: "the sum of the upper bound diverges, so no receptive field is proven for the family",
};
const CUT_OFF = "not known: the work was cut off";

export class Encoding {
  // `one` is its entry of the state, `look` its colour; changed() is called when something new is known
  constructor(one, look, changed) {
    Object.assign(this, { one, look, changed, parts: {}, askers: {}, wanted: new Set() });
    for (const kind of ["verdict", ...PARTS, ...FOLDED]) {
      this.askers[kind] = new Asker(kind, (answer, fields) => this.#answered(kind, answer, fields), (error, fields) => this.#failed(kind, error, fields));
      this.parts[kind] = { status: "none", data: null, error: null };
    }
  }

  // Ask everything again; what a changed formula leaves behind is cleared, what a moved slider leaves is dimmed.
  ask() {
    const key = JSON.stringify([this.one.formula, this.one.from, this.one.assume]);
    if (key !== this.key) {
      this.key = key;
      this.stop();
      for (const part of Object.values(this.parts)) Object.assign(part, { status: "asking", data: null, error: null });
    } else {
      for (const [kind, part] of Object.entries(this.parts)) if (kind !== "condition") part.status = "asking";
    }
    this.askers.verdict.ask(this.settings());
    this.changed(this);
  }

  // From now on this part is wanted too.
  want(kind) {
    this.wanted.add(kind);
    if (!this.verdict || this.verdict === "not-applicable") return;
    this.parts[kind].status = "asking";
    this.askers[kind].ask(this.#fields(kind));
  }

  stop() {
    for (const asker of Object.values(this.askers)) asker.stop();
  }

  get verdict() {
    return this.parts.verdict.data?.verdict.verdict ?? null;
  }

  // Of a bounded family: which of the three answers is proven; undefined for one bias.
  get answer() {
    const found = this.parts.verdict.data?.verdict;
    return found?.many ? found.answer ?? "undecided" : undefined;
  }

  get parameters() {
    return this.parts.verdict.data?.parameters ?? [];
  }

  // Whether a part that is shown belongs to other parameters or settings than those set now.
  get stale() {
    const old = (kind) => this.parts[kind].data && this.parts[kind].key !== JSON.stringify(this.#fields(kind));
    return this.parts.verdict.status === "asking" || [...PARTS, ...FOLDED].some(old);
  }

  get label() {
    const known = this.parts.verdict.data;
    if (!known) return shorten(this.one.formula, 60);
    return shorten(known.name, 60) + (known.parameters.length ? `, ${this.values}` : "");
  }

  get values() {
    return this.parameters.map((p) => `${p.name} = ${p.value}${p.learned ? ` (learned from ${p.text})` : ""}`).join(", ");
  }

  // The receptive fields that are proven, from the largest epsilon on.
  get rows() {
    return this.parts.fields.data?.rows ?? [];
  }

  // Why there is no receptive field to show, in a sentence that says no more than is known.
  get noField() {
    const { verdict, fields } = this.parts;
    if (verdict.error?.unanswered) return "no verdict: nobody answered";
    if (verdict.error) return verdict.error.late ? "no verdict yet: the work was cut off" : `no verdict: ${shorten(verdict.error.message, 200)}`;
    if (!verdict.data) return "not judged yet";
    if (this.verdict === "diverges" && this.answer) return NONE_OF_FAMILY[this.answer];
    if (this.verdict === "diverges") return "the sum diverges, so there is no receptive field";
    if (this.verdict === "not-applicable") return "no bias r(t), so the theorem says nothing about it";
    if (this.verdict !== "converges") return "undecided, so no receptive field is known";
    if (fields.error) return fields.error.late ? `it converges; its receptive field is ${CUT_OFF}` : fields.error.message;
    if (fields.data?.why) return `it converges; ${fields.data.why}`;
    return fields.status === "asking" ? "it converges; its receptive field is being computed" : "no receptive field is known";
  }

  // Why one epsilon has no receptive field, where others have.
  noFieldAt(epsilon) {
    if (!this.rows.length) return this.noField;
    const { data, error, status } = this.parts.fields;
    if (error) return `it converges; at epsilon ${epsilon} its receptive field is ${error.late ? CUT_OFF : `not known: ${error.message}`}`;
    if (data?.why) return `it converges; ${data.why}`;
    return `it converges; its receptive field at epsilon ${epsilon} is ${status === "asking" ? "being computed" : "not known"}`;
  }

  // The word for one epsilon of the table.
  field(epsilon) {
    const row = this.rows.find((r) => r.epsilon === epsilon);
    if (row) return row.tokens;
    const { data, error, status } = this.parts.fields;
    if (this.verdict === "diverges") return "none";
    if (error) return error.late ? "cut off" : "–";
    if (data?.why || this.verdict !== "converges") return "not decided";
    return status === "asking" ? "…" : "–";
  }

  settings() {
    const { formula, from, set } = this.one;
    return [["f", formula], ...Object.entries(set).map(([name, value]) => ["set", `0.${name}=${value}`]),
      ["heads", state.heads], ["head", state.head], ["from", from]];
  }

  #fields(kind) {
    const more = { fields: ["epsilon"], drawn: ["context"], claimed: ["context", "epsilon"], window: ["context", "epsilon", "bound"], code: ["epsilon", "bound"] }[kind] ?? [];
    if (kind === "condition") return [["f", this.one.formula], ["from", this.one.from], ...(this.one.assume ? [["assume", this.one.assume]] : [])];
    const own = this.settings().filter(([name]) => kind !== "heads" || name !== "head");
    return [...own, ...more.map((name) => [name, state[name]])];
  }

  #answered(kind, answer, fields) {
    const part = this.parts[kind], base = fields.filter(([name]) => name !== "skip");
    const key = JSON.stringify(base);
    if (fields.length > base.length) { // the next part of an answer in parts
      if (part.key !== key) return;
      answer.rows = [...part.data.rows, ...answer.rows];
    }
    const current = key === JSON.stringify(kind === "verdict" ? this.settings() : this.#fields(kind));
    Object.assign(part, { key, data: answer, error: null, status: current && !answer.rest ? "known" : "asking" });
    // the rest of an earlier question would take the place of the question that waits
    if (answer.rest && current) this.askers[kind].ask([...base, ["skip", String(answer.rows.length)]]);
    if (kind === "verdict") this.#askParts();
    this.changed(this);
  }

  #askParts() {
    const bias = this.verdict !== "not-applicable";
    for (const kind of PARTS) {
      if (kind === "condition" && this.parts.condition.status !== "asking") continue;
      if (bias || kind === "code") this.askers[kind].ask(this.#fields(kind));
      else Object.assign(this.parts[kind], { status: "none", data: null, error: null });
    }
    for (const kind of this.wanted) this.want(kind);
  }

  // What was proven before the work was cut off stays, if it is of this formula with these values.
  #failed(kind, error, fields) {
    const part = this.parts[kind];
    const kept = part.key === JSON.stringify(fields.filter(([name]) => name !== "skip")) ? part.data : null;
    if (kind === "verdict") {
      for (const other of Object.values(this.parts)) Object.assign(other, { status: "none", data: null, error: null });
    }
    Object.assign(part, { status: "failed", data: kind === "verdict" ? null : kept, error });
    this.changed(this);
  }
}
