// A figure as a file: SVG as it is drawn, PNG at twice its size, always in light colours; its values as CSV.

import { el, say } from "./dom.js";

// figure() draws it; values() writes its numbers
export function saveButtons(name, figure, values) {
  return el("div", { class: "save" },
    el("button", { type: "button", "aria-label": `Save ${name} as SVG`, click: (e) => saveSvg(name, figure(), e.target) }, "SVG"),
    el("button", { type: "button", "aria-label": `Save ${name} as PNG`, click: (e) => savePng(name, figure(), e.target) }, "PNG"),
    el("button", { type: "button", "aria-label": `Save ${name} as CSV`,
      click: (e) => download(new Blob([values()], { type: "text/csv" }), `farfield-${name}.csv`, e.target) }, "CSV"));
}

function written(root) {
  root.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new Blob([new XMLSerializer().serializeToString(root)], { type: "image/svg+xml" });
}

export function download(blob, file, button) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  say("Saved", button);
}

function saveSvg(name, root, button) {
  download(written(root), `farfield-${name}.svg`, button);
}

function savePng(name, root, button) {
  const address = URL.createObjectURL(written(root));
  const picture = new Image();
  picture.addEventListener("load", () => {
    const canvas = el("canvas", { width: 2 * root.getAttribute("width"), height: 2 * root.getAttribute("height") });
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(blob, `farfield-${name}.png`, button), "image/png");
    URL.revokeObjectURL(address);
  });
  picture.addEventListener("error", () => say("Could not save", button));
  picture.src = address;
}
