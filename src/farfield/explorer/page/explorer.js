// The page: settings, encodings side by side, figures; every change goes into the address and back from it.

import { start } from "./backend.js";
import { Configuration } from "./configuration.js";
import { Details } from "./details.js";
import { copy, el, put, say } from "./dom.js";
import { Encoding } from "./encoding.js";
import { Entry } from "./entry.js";
import { Figures } from "./figures.js";
import { Design, Pairs, Study } from "./panels.js";
import { MOST, newEncoding, readAddress, state, typedNumber, writeAddress } from "./state.js";

const byId = (id) => document.getElementById(id);
const THEMES = ["auto", "light", "dark"];
let views = [], zoo = [], figures, pairs, design, study, configuration, drawing = 0, comparing = 0;
const encodings = () => views.map((view) => view.encoding);

function makeViews() {
  for (const view of views) view.encoding.stop();
  views = [];
  for (const one of state.encodings) views.push(makeView(one));
  put(byId("entries"), ...views.map((view) => view.entry.element));
  put(byId("cards"), ...views.map((view) => view.details.element));
  placed();
}

// An encoding keeps its colour as long as it is there; a new one takes the first that is free.
function makeView(one) {
  const taken = encodings().map((e) => e.look);
  const free = [...Array(MOST).keys()].find((i) => !taken.includes(i));
  const encoding = new Encoding(one, free, () => answered());
  const changed = (step) => {
    writeAddress(step);
    encoding.ask();
  };
  const view = { encoding, entry: new Entry(encoding, { zoo, changed, removed: () => remove(view) }), details: new Details(encoding, changed) };
  return view;
}

function placed() {
  views.forEach((view, i) => view.entry.place(i + 1, views.length === 1));
  byId("add").disabled = views.length >= MOST;
  answered();
}

function add() {
  const one = newEncoding("-k*sqrt(t)");
  state.encodings.push(one);
  const view = makeView(one);
  views.push(view);
  byId("entries").append(view.entry.element);
  byId("cards").append(view.details.element);
  placed();
  writeAddress(true);
  view.encoding.ask();
  view.entry.input.focus();
  view.entry.input.select();
}

function remove(view) {
  view.encoding.stop();
  const at = views.indexOf(view);
  views.splice(at, 1);
  state.encodings.splice(at, 1);
  view.entry.element.remove();
  view.details.element.remove();
  placed();
  writeAddress(true);
  views[Math.max(0, at - 1)].entry.input.focus();
  say("Removed");
}

// The page follows the answers, once for each frame; comparisons come when nothing has moved for a moment.
function answered() {
  cancelAnimationFrame(drawing);
  drawing = requestAnimationFrame(() => {
    for (const view of views) {
      view.entry.update();
      view.details.update();
    }
    figures.update(encodings());
    design.update(encodings());
    showWrongSettings();
  });
  clearTimeout(comparing);
  comparing = setTimeout(() => pairs.ask(encodings()), 300);
}

function askAll() {
  for (const view of views) view.encoding.ask();
}

function showSettings() {
  byId("heads").value = state.heads;
  byId("head").max = state.heads;
  byId("head").value = state.head;
  byId("heads-shown").textContent = state.heads;
  byId("head-shown").textContent = `${state.head} of ${state.heads}`;
  byId("context").value = String(Math.round(Math.log2(Number(state.context))));
  byId("context-shown").textContent = state.context;
  for (const name of ["epsilon", "bound"]) byId(name).value = state[name];
}

// A mistake in a setting is said where the setting is, not as if the formulas were wrong.
function showWrongSettings() {
  const errors = encodings().flatMap((e) => [e.parts.fields.error, e.parts.window.error]).filter((e) => e && !e.late).map((e) => e.message);
  const wrong = { epsilon: errors.find((words) => words.startsWith("epsilon")), bound: errors.find((words) => words.includes("bound")) };
  for (const [name, words] of Object.entries(wrong)) byId(name).setAttribute("aria-invalid", String(Boolean(words)));
  const said = [...new Set(Object.values(wrong).filter(Boolean))].join("; ");
  byId("settings-wrong").hidden = !said;
  byId("settings-wrong").textContent = said;
}

function listen() {
  const setting = (id, kind, read) => byId(id).addEventListener(kind, (event) => {
    read(event.target.value);
    showSettings();
    writeAddress(kind === "change");
    askAll();
  });
  setting("heads", "input", (value) => {
    const last = state.head === state.heads;
    state.heads = value;
    if (last || Number(state.head) > Number(value)) state.head = value;
  });
  setting("head", "input", (value) => { state.head = value; });
  setting("context", "input", (value) => { state.context = String(2 ** Number(value)); });
  setting("epsilon", "change", (value) => { state.epsilon = typedNumber(value); });
  setting("bound", "change", (value) => { state.bound = typedNumber(value); });
  byId("add").addEventListener("click", add);
  byId("link").addEventListener("click", (event) => copy(location.href, event.target));
  byId("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || "auto";
    theme(THEMES[(THEMES.indexOf(now) + 1) % 3]);
  });
  byId("skip").addEventListener("click", (event) => { // the address holds the state, so no jump by address
    event.preventDefault();
    byId("entries").focus();
  });
  byId("settings").open = matchMedia("(min-width: 700px)").matches;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("hashchange", load);
  addEventListener("popstate", load);
}

function theme(chosen) {
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  byId("theme").textContent = `Colours: ${chosen}`;
  byId("theme").setAttribute("aria-label", `Colours: ${chosen === "auto" ? "as the system" : chosen}`);
  redraw();
}

function redraw() {
  for (const view of views) {
    view.entry.drawSwatch();
    view.details.update();
  }
  figures.legendKey = null;
  figures.update(encodings());
  study.chart?.draw();
  configuration.draw();
}

let loaded = null;
function load() {
  if (loaded === location.href) return; // hashchange and popstate come together
  loaded = location.href;
  readAddress();
  showSettings();
  design.read();
  configuration.read();
  makeViews();
  askAll();
  study.draw();
  setTimeout(() => { loaded = null; }, 0);
}

async function begin() {
  try {
    const given = await start();
    zoo = given.zoo;
    byId("zoo").append(...zoo.map((e) => el("option", { value: e.name }, e.formula || e.note)));
    figures = new Figures(() => {
      writeAddress(true);
      answered();
    });
    pairs = new Pairs();
    study = new Study(given.study, () => writeAddress(true));
    design = new Design({ changed: (used) => {
      writeAddress(true);
      if (used) askAll();
    } });
    configuration = new Configuration(() => writeAddress(true));
    listen();
    load();
  } catch (error) {
    put(byId("entries"), el("p", { class: "error", role: "alert" }, `The explorer could not start: ${error.message}`));
  }
}

begin();
