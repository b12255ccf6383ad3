// The state of the page, all of it in the address: a link shows the same.

export const MOST = 6; // encodings side by side
const PLAIN = {
  heads: "8", head: "8", context: "512", epsilon: "0.01", bound: "5", heat: "linear", figure: "receptive-field",
  of: "0", parameter: "", reach: "", within: "0.01", corpus: "", protocol: "", config: "", logits: "",
};
const LONGEST_CONFIG = 6000; // characters of a configuration that a link carries

export const state = { encodings: [], ...PLAIN };

// A number as it was typed; one that was copied from a text may have another minus sign.
export function typedNumber(text) {
  return text.trim().replaceAll("−", "-");
}

export function newEncoding(formula) {
  return { formula, set: {}, from: "0", assume: "", hidden: false };
}

// Read the address; what is missing has its usual value.
export function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, PLAIN, { encodings: [] });
  for (const [name, value] of given) {
    const last = state.encodings[state.encodings.length - 1];
    if (name === "f" && state.encodings.length < MOST) {
      state.encodings.push(newEncoding(value.slice(0, 1000)));
    } else if (name === "set" && last && value.includes("=")) {
      const cut = value.indexOf("=");
      last.set[value.slice(0, cut)] = value.slice(cut + 1, cut + 200);
    } else if (name === "from" && last) {
      last.from = value.slice(0, 20);
    } else if (name === "assume" && last) {
      last.assume = value.slice(0, 200);
    } else if (name === "hide" && last) {
      last.hidden = true;
    } else if (Object.hasOwn(PLAIN, name)) {
      state[name] = value.slice(0, name === "config" ? LONGEST_CONFIG : 200);
    }
  }
  for (const name of ["epsilon", "bound", "within"]) state[name] = typedNumber(state[name]);
  state.heads = String(clamp(state.heads, 1, 32, 8));
  state.head = String(clamp(state.head, 1, Number(state.heads), Number(state.heads)));
  state.context = String(clamp(state.context, 2, 65536, 512));
  if (!state.encodings.length) state.encodings = ["alibi", "sandwich"].map(newEncoding);
}

// Write the address; a step that a person may want to take back is a new entry of the history.
export function writeAddress(step = false) {
  const out = new URLSearchParams();
  for (const one of state.encodings) {
    out.append("f", one.formula);
    if (one.from !== "0") out.append("from", one.from);
    if (one.assume) out.append("assume", one.assume);
    if (one.hidden) out.append("hide", "1");
    for (const [name, value] of Object.entries(one.set)) out.append("set", `${name}=${value}`);
  }
  for (const [name, usual] of Object.entries(PLAIN)) {
    if (state[name] !== usual && state[name].length <= LONGEST_CONFIG) out.append(name, state[name]);
  }
  const next = `#${out}`;
  if (next === location.hash) return;
  if (step) history.pushState(null, "", next);
  else history.replaceState(null, "", next);
}

function clamp(text, least, most, usual) {
  const number = Math.round(Number(text));
  return Number.isFinite(number) && text.trim() ? Math.min(most, Math.max(least, number)) : usual;
}
