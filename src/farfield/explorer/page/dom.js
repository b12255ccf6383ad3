// Elements, mathematics and texts: everything that a person typed becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";
const MATHML = "http://www.w3.org/1998/Math/MathML";
const MATH_TAGS = new Set([
  "mrow", "mi", "mn", "mo", "mtext", "mfrac", "msup", "msub", "msqrt", "munderover", "mtable", "mtr", "mtd",
]);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...there(children));
  return node;
}

function there(children) {
  return children.flat().filter((child) => child !== null && child !== undefined);
}

// Give an element new children; what is null is left out.
export function put(node, ...children) {
  node.replaceChildren(...there(children));
}

// An element of the page; a function as attribute is a listener.
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// An element of a figure.
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// A tree of MathML from the server: lists of a name and children.
export function math(tree) {
  const root = document.createElementNS(MATHML, "math");
  root.setAttribute("displaystyle", "true");
  root.append(mathNode(tree));
  return root;
}

function mathNode([name, ...children]) {
  if (!MATH_TAGS.has(name)) throw new Error(`no element of mathematics: ${name}`);
  const node = document.createElementNS(MATHML, name);
  for (const child of children) node.append(typeof child === "string" ? child : mathNode(child));
  if (name === "mtd") node.setAttribute("columnalign", "left");
  return node;
}

// The steps of a proof: words, and mathematics between them.
export function steps(list) {
  return el("ol", {}, ...list.map((step) => el("li", {}, el("div", { class: "step" }, ...step.map((p) => (p.math ? math(p.math) : p.words))))));
}

// Tell those who listen instead of looking, and show it for a moment on a button.
export function say(text, button = null) {
  document.getElementById("said").textContent = text;
  if (!button) return;
  const before = button.dataset.label || button.textContent;
  button.dataset.label = before;
  button.textContent = text;
  clearTimeout(button.timer);
  button.timer = setTimeout(() => { button.textContent = before; }, 1500);
}

// Put a text on the clipboard.
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { class: "unseen", readonly: true });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) return say("Could not copy", button);
  }
  return say("Copied", button);
}

export function shorten(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
