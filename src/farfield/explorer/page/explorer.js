// The page: settings, encodings side by side, figures; every change goes into the address and back from it.

import { copy, el, put, say } from "./dom.js";
import { get } from "./ask.js";
import { Card } from "./card.js";
import { Figures } from "./figures.js";
import { Design, Pairs, Study } from "./panels.js";
import { MOST, readAddress, state, writeAddress } from "./state.js";

const byId = (id) => document.getElementById(id);
const THEMES = ["auto", "light", "dark"];
let cards = [], zoo = [], figures, pairs, design, study, drawing = 0, comparing = 0;

function makeCards() {
  for (const card of cards) card.stop();
  cards = state.encodings.map(makeCard);
  put(byId("cards"), ...cards.map((card) => card.element));
  placed();
}

function makeCard(one) {
  const card = new Card(one, { zoo, changed: (step) => { writeAddress(step); card.ask(); }, answered, removed: remove });
  return card;
}

function placed() {
  cards.forEach((card, i) => card.place(i, cards.length === 1));
  byId("add").disabled = cards.length >= MOST;
  answered();
}

function add() {
  const one = { formula: "-k*sqrt(t)", set: {}, from: "0" };
  state.encodings.push(one);
  const card = makeCard(one);
  cards.push(card);
  byId("cards").append(card.element);
  placed();
  writeAddress(true);
  card.ask();
  card.input.focus();
  card.input.select();
}

function remove(card) {
  card.stop();
  const at = cards.indexOf(card);
  cards.splice(at, 1);
  state.encodings.splice(at, 1);
  card.element.remove();
  placed();
  writeAddress(true);
  cards[Math.max(0, at - 1)].input.focus();
  say("Removed");
}

// Figures follow the answers, once for each frame; comparisons when nothing has moved for a moment.
function answered() {
  cancelAnimationFrame(drawing);
  drawing = requestAnimationFrame(() => {
    figures.update(cards, state.context);
    design.update(cards);
  });
  clearTimeout(comparing);
  comparing = setTimeout(() => pairs.ask(cards), 300);
}

function askAll() {
  for (const card of cards) card.ask();
}

function showSettings() {
  byId("heads").value = state.heads;
  byId("head").max = state.heads;
  byId("head").value = state.head;
  byId("heads-shown").textContent = state.heads;
  byId("head-shown").textContent = `${state.head} of ${state.heads}`;
  byId("context").value = String(Math.round(Math.log2(Number(state.context))));
  byId("context-shown").textContent = state.context;
  for (const name of ["epsilon", "bound", "heat"]) byId(name).value = state[name];
}

function listen() {
  const setting = (id, kind, read) => byId(id).addEventListener(kind, (event) => {
    read(event.target.value);
    showSettings();
    writeAddress(kind === "change");
    if (id === "heat") cards.forEach((card) => card.drawHeat());
    else askAll();
  });
  setting("heads", "input", (value) => {
    const last = state.head === state.heads;
    state.heads = value;
    if (last || Number(state.head) > Number(value)) state.head = value;
  });
  setting("head", "input", (value) => { state.head = value; });
  setting("context", "input", (value) => { state.context = String(2 ** Number(value)); });
  setting("epsilon", "change", (value) => { state.epsilon = value.trim(); });
  setting("bound", "change", (value) => { state.bound = value.trim(); });
  setting("heat", "change", (value) => { state.heat = value; });
  byId("add").addEventListener("click", add);
  byId("link").addEventListener("click", (event) => copy(location.href, event.target));
  byId("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || "auto";
    theme(THEMES[(THEMES.indexOf(now) + 1) % 3]);
  });
  byId("skip").addEventListener("click", (event) => { // the address holds the state, so no jump by address
    event.preventDefault();
    byId("cards").focus();
  });
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
  for (const card of cards) {
    card.drawSwatch();
    card.drawHeat();
  }
  figures.draw();
  study.chart?.draw();
}

let loaded = null;
function load() {
  if (loaded === location.href) return; // hashchange and popstate come together
  loaded = location.href;
  readAddress();
  showSettings();
  design.read();
  makeCards();
  askAll();
  study.draw();
  setTimeout(() => { loaded = null; }, 0);
}

async function start() {
  try {
    const given = await get("api/start");
    zoo = given.zoo;
    byId("zoo").append(...zoo.map((e) => el("option", { value: e.name }, e.formula || e.note)));
    figures = new Figures(byId("figures"));
    pairs = new Pairs();
    study = new Study(given.study, () => writeAddress(true));
    design = new Design({ changed: (used) => {
      writeAddress(true);
      if (used) askAll();
    } });
    listen();
    load();
  } catch (error) {
    put(byId("cards"), el("p", { class: "error", role: "alert" }, `The explorer could not start: ${error.message}`));
  }
}

start();
