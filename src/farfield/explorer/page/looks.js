// How figures look: colours that colour-blind people can tell apart (Okabe and Ito), lines and markers that differ too.

const LIGHT = ["#000000", "#0072b2", "#d55e00", "#008060", "#b0578d", "#3a8ec2", "#6f6f6f"];
const DARK = ["#f2f2f2", "#56b4e9", "#ff8c3c", "#2fc79a", "#e69ac6", "#f0e442", "#a8a8a8"];
const TURN = 137.508; // degrees from one further hue to the next: none comes back
const DASHES = ["", "7 4", "7 3 2 3", "2 3", "9 3 2 3 2 3", "1 4", "12 4"];
const MARKERS = ["circle", "square", "triangle", "diamond", "down", "cross", "plus"];
const CIVIDIS = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116],
  [195, 179, 105], [225, 204, 85], [254, 232, 56],
];

export function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// Colours of a figure: the page's own, or always light for a file.
export function colours(asDark = dark()) {
  return asDark
    ? { lines: DARK, ink: "#e6e6e6", faint: "#9aa0a6", grid: "#3a3f45", paper: "#1d2125" }
    : { lines: LIGHT, ink: "#1b1b1b", faint: "#5f6368", grid: "#dcdfe3", paper: "#ffffff" };
}

export function look(i, theme) {
  return {
    colour: theme.lines[i] ?? `hsl(${((i * TURN) % 360).toFixed(1)} 65% ${theme.lines === DARK ? 68 : 36}%)`,
    dash: DASHES[i % 7],
    marker: MARKERS[(i + Math.floor(i / 7)) % 7],
  };
}

// A colour between dark blue (0) and yellow (1).
export function cividis(share) {
  const x = Math.min(1, Math.max(0, share)) * (CIVIDIS.length - 1);
  const i = Math.min(CIVIDIS.length - 2, Math.floor(x));
  const mixed = CIVIDIS[i].map((v, c) => Math.round(v + (CIVIDIS[i + 1][c] - v) * (x - i)));
  return `rgb(${mixed.join(",")})`;
}

// The outline of a marker around a point.
export function markerPath(kind, x, y, r = 3.2) {
  const p = (...points) => `M${points.map(([a, b]) => `${(x + a * r).toFixed(1)} ${(y + b * r).toFixed(1)}`).join("L")}`;
  return {
    circle: () => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
    square: () => `${p([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9])}z`,
    triangle: () => `${p([0, -1.2], [1.1, 0.9], [-1.1, 0.9])}z`,
    diamond: () => `${p([0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0])}z`,
    down: () => `${p([0, 1.2], [1.1, -0.9], [-1.1, -0.9])}z`,
    cross: () => p([-1, -1], [1, 1]) + p([-1, 1], [1, -1]),
    plus: () => p([-1.2, 0], [1.2, 0]) + p([0, -1.2], [0, 1.2]),
  }[kind]();
}
