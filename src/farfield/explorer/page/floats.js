// The weights of a formula at many distances, in double precision: what numpy does where there is a server.
// One rule for each operation of the language; a test compares the names with those of the grammar, and the values.

export const RULES = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "**": (a, b) => a ** b,
  neg: (a) => -a,
  exp: Math.exp,
  log: Math.log,
  sqrt: Math.sqrt,
  sin: Math.sin,
  cos: Math.cos,
  abs: Math.abs,
  floor: Math.floor,
  min: Math.min,
  max: Math.max,
  mod: (a, b) => a - b * Math.floor(a / b),
  tanh: Math.tanh,
  sigmoid: (a) => 1 / (1 + Math.exp(-a)),
  softplus: (a) => Math.max(a, 0) + Math.log1p(Math.exp(-Math.abs(a))),
  relu: (a) => Math.max(a, 0),
  log1p: Math.log1p,
  log2: Math.log2,
  log10: Math.log10,
  expm1: Math.expm1,
  cosh: Math.cosh,
  sinh: Math.sinh,
  tan: Math.tan,
};
const COMPARE = { "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b };

// A value is a number, or an array with one number for each distance.
function each(size, rule, ...values) {
  if (values.every((v) => typeof v === "number")) return rule(...values);
  const at = values.map((v) => (typeof v === "number" ? () => v : (i) => v[i]));
  const out = new Float64Array(size);
  if (at.length === 1) for (let i = 0; i < size; i += 1) out[i] = rule(at[0](i));
  else if (at.length === 2) for (let i = 0; i < size; i += 1) out[i] = rule(at[0](i), at[1](i));
  else for (let i = 0; i < size; i += 1) out[i] = rule(...at.map((f) => f(i)));
  return out;
}

function value(node, names, size) {
  const [op, ...rest] = node;
  if (op === "number") return rest[0];
  if (op === "name") return names[rest[0]];
  if (op === "pi") return Math.PI;
  if (op === "-inf") return -Infinity;
  if (op === "where") {
    const [sign, ...parts] = rest;
    return each(size, (a, b, c, d) => (COMPARE[sign](a, b) ? c : d), ...parts.map((p) => value(p, names, size)));
  }
  if (op === "sum") {
    const [index, body, first, last] = rest;
    let total = 0;
    const end = value(last, names, size);
    for (let j = value(first, names, size); j <= end; j += 1) {
      total = each(size, RULES["+"], total, value(body, { ...names, [index]: j }, size));
    }
    return total;
  }
  if (!Object.hasOwn(RULES, op)) throw new Error(`the page has no rule for ${op}`);
  return each(size, RULES[op], ...rest.map((p) => value(p, names, size)));
}

// exp(r(t)) at `terms` distances from `start` on, for an expression as JSON; `weight`: it gives the weight itself.
export function weights(expression, weight, start, terms) {
  const t = Float64Array.from({ length: terms }, (_, i) => start + i);
  const found = value(JSON.parse(expression), { t }, terms);
  return Float64Array.from(t, (_, i) => {
    const one = typeof found === "number" ? found : found[i];
    return Math.exp(weight ? Math.log(one) : one);
  });
}
