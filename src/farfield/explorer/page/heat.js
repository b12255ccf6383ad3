// The heat map of exp(r): one row for each query, one column for each key, the weight of each pair as a colour.

import { svg } from "./dom.js";
import { short } from "./axes.js";
import { cividis, colours } from "./looks.js";

const DEEPEST = 6; // powers of ten of the logarithmic scale

export function heatMap({ values, stride, context }, scale, width, theme = colours()) {
  const left = 46, top = 26, side = Math.min(300, width - left - 58), cell = side / values.length;
  const height = top + side + 40;
  const known = values.filter((v) => v !== null && v >= 0);
  const most = Math.max(...known, 0);
  const share = (v) => {
    if (!(most > 0) || !(v > 0)) return 0;
    return scale === "log" ? 1 + Math.log10(v / most) / DEEPEST : v / most;
  };
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "font-family": "system-ui, sans-serif",
    "font-size": 11, fill: theme.ink,
    "aria-label": `Heat map of exp(r): the weight of each key for each query among ${context} tokens; ` +
      `the token itself has weight ${known.length ? short(values.find((v) => v !== null)) : "none"}`,
  }, svg("rect", { width, height, fill: theme.paper }),
    svg("text", { x: left, y: 16, "font-weight": 600, "font-size": 12 }, `weights exp(r), ${scale === "log" ? "logarithmic" : "linear"}`),
    svg("rect", { x: left, y: top, width: side, height: side, fill: theme.grid, "fill-opacity": 0.4 }));
  const cells = svg("g", { "shape-rendering": "crispEdges" });
  values.forEach((value, t) => {
    if (value === null) return;
    let path = "";
    for (let i = t; i < values.length; i += 1) {
      const x = left + (i - t) * cell, y = top + i * cell;
      path += `M${x.toFixed(2)} ${y.toFixed(2)}h${cell.toFixed(2)}v${cell.toFixed(2)}h${(-cell).toFixed(2)}z`;
    }
    cells.append(svg("path", { d: path, fill: cividis(share(value)) }));
  });
  root.append(cells);
  for (const part of [0, 0.5, 1]) {
    const token = Math.round(part * (context - 1));
    root.append(svg("text", { x: left + part * side, y: top + side + 14, "text-anchor": "middle", fill: theme.faint }, token),
      svg("text", { x: left - 5, y: top + part * side + 4, "text-anchor": "end", fill: theme.faint }, token));
  }
  root.append(svg("text", { x: left + side / 2, y: top + side + 30, "text-anchor": "middle" },
    stride > 1 ? `key (every ${ordinal(stride)} token)` : "key"),
    svg("text", { transform: `translate(11 ${top + side / 2}) rotate(-90)`, "text-anchor": "middle" }, "query"),
    svg("text", { x: left + side * 0.97, y: top + 18, "text-anchor": "end", fill: theme.faint }, "the future: not seen"));
  return bar(root, left + side + 12, top, side, most, scale, theme);
}

function bar(root, x, top, side, most, scale, theme) {
  const steps = 32;
  for (let i = 0; i < steps; i += 1) {
    root.append(svg("rect", { x, y: top + (side * i) / steps, width: 10, height: side / steps + 0.6,
      fill: cividis(1 - (i + 0.5) / steps) }));
  }
  for (const part of [0, 0.5, 1]) {
    const value = scale === "log" ? most * 10 ** (-part * DEEPEST) : most * (1 - part);
    root.append(svg("text", { x: x + 13, y: top + part * side + (part === 0 ? 8 : part === 1 ? 0 : 4), "font-size": 9,
      fill: theme.faint }, value >= 1e-3 || value === 0 ? String(Number(value.toPrecision(2))) : value.toExponential(0)));
  }
  return root;
}

function ordinal(n) {
  const ending = n % 100 > 10 && n % 100 < 14 ? "th" : { 1: "st", 2: "nd", 3: "rd" }[n % 10] || "th";
  return `${n}${ending}`;
}
