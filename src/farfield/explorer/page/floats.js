// The weights of a formula at many distances, in double precision: what numpy does where there is a server.
// One rule for each operation of the language; a test compares the names with those of the grammar, and the values.

// erf(x) = 2/sqrt(pi) exp(-x^2) (x + 2x^3/3 + 4x^5/15 + ...), in which nothing cancels
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x;
  let total = x;
  for (let n = 1; Math.abs(term) > Math.abs(total) * 1e-17; n += 1) {
    term *= (2 * x * x) / (2 * n + 1);
    total += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
}

// gamma(x) for x > 0: moved up to where Stirling's series is exact enough
function gamma(x) {
  if (!(x > 0)) return NaN;
  if (x > 172) return Infinity;
  let below = 1;
  let y = x;
  for (; y < 16; y += 1) below *= y;
  const z = 1 / (y * y);
  const rest = (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - (z * 5) / 5940)))) / y;
  return (Math.sqrt(2 * Math.PI) * Math.exp((y - 0.5) * Math.log(y) - y + rest)) / below;
}

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
  atan: Math.atan,
  erf,
  gamma,
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
