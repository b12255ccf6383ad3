// A page without a server: answers that were computed when it was built, and for all else a worker of this browser.

const ORDER = ["verdict", "coq", "drawn", "fields", "window", "condition", "code", "compare", "design", "inspect", "claimed", "heads"];
const byId = (id) => document.getElementById(id);
let given = null, known = null, worker = null, ready = false, running = null, waiting = [], counted = 0, broken = null;

export async function start() {
  [given, known] = await Promise.all([fetched("start.json"), fetched("answers.json")]);
  byId("loading").hidden = false;
  setTimeout(begin, 0); // the page is there first
  return given;
}

export function ask(kind, fields, signal) {
  const answer = known[JSON.stringify([kind, fields])];
  if (answer) return Promise.resolve(structuredClone(answer));
  return new Promise((resolve, reject) => {
    const question = { id: (counted += 1), kind, fields, resolve, reject };
    signal?.addEventListener("abort", () => { // one that is being worked on is left to end: a new worker costs seconds
      waiting = waiting.filter((other) => other !== question);
      reject(new DOMException("overtaken", "AbortError"));
    });
    waiting.push(question);
    next();
  });
}

// A file of this page's folder, or a sentence that says what is missing.
async function fetched(name) {
  const response = await fetch(name).catch(() => null);
  const data = response?.ok ? await response.json().catch(() => null) : null;
  if (!data) throw new Error(`${name} is not there, or not whole: put all files of \`farfield explore --static\` on this host`);
  return data;
}

// A worker with Python in it; the page says how far it is.
function begin() {
  if (typeof WebAssembly !== "object") return lost("it has no WebAssembly");
  const own = (worker = new Worker("worker.js", { type: "module" }));
  own.addEventListener("message", ({ data }) => { if (own === worker) heard(data); });
  own.addEventListener("error", (event) => { if (own === worker) died(event.message || "its worker did not start"); });
  worker.postMessage({ load: given.python });
  byId("loading").hidden = false;
  progress(0);
  return undefined;
}

// Another worker in the place of one that is lost.
function again() {
  worker.terminate();
  ready = false;
  begin();
}

// A worker that dies before it was ready would die again; one that was at work is replaced.
function died(why) {
  if (!ready) return lost(why);
  const words = `the work on this formula ended this browser's Python (${why}); it is being started again`;
  if (running) settle().reject(Object.assign(new Error(words), { late: true }));
  return again();
}

function lost(why) {
  worker?.terminate();
  broken = `Python could not be loaded in this browser (${why}), so only named encodings as they stand are answered here`;
  byId("loading").hidden = false;
  byId("loading").classList.add("error");
  byId("loading-said").textContent = broken;
  byId("loaded").hidden = true;
  next();
}

function progress(bytes) {
  const share = Math.min(0.99, bytes / given.python.bytes);
  byId("loaded").value = share;
  byId("loading-said").textContent = share < 0.99
    ? `Named encodings are answered already; Python is being loaded for all else: ${Math.round(bytes / 1e6)} of ${Math.round(given.python.bytes / 1e6)} MB`
    : "Python is starting…";
}

function heard(data) {
  if (broken) return undefined; // what was still under way
  if (data.loaded !== undefined) return progress(data.loaded);
  if (data.ready) {
    ready = true;
    byId("loading").hidden = true;
    return next();
  }
  if (running && data.id === running.id) {
    if (data.fault) return died(data.fault);
    const { resolve, reject } = settle();
    if (data.reply.error) reject(Object.assign(new Error(data.reply.error), { pointer: data.reply.pointer }));
    else resolve(data.reply);
    return next();
  }
  return data.fault && !ready ? lost(data.fault) : undefined;
}

function settle() {
  const done = running;
  clearTimeout(done.timer);
  running = null;
  return done;
}

// The next question: verdicts before numbers. One that takes too long ends its worker, and another one begins.
function next() {
  if (broken) for (const { reject } of waiting.splice(0)) reject(Object.assign(new Error(broken), { unanswered: true }));
  if (!ready || running || !waiting.length) return;
  waiting.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || a.id - b.id);
  running = waiting.shift();
  running.timer = setTimeout(() => {
    const { reject } = settle();
    again();
    const words = `no answer within ${given.seconds} seconds, so the work on this formula was cut off; the command line has as long as FARFIELD_TIME=600 gives it, in seconds`;
    reject(Object.assign(new Error(words), { late: true }));
  }, 1000 * given.seconds);
  worker.postMessage({ id: running.id, kind: running.kind, fields: running.fields });
}
