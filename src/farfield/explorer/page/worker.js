// Python in a worker of the browser: loads Pyodide, python-flint and Farfield, then answers one question at a time.

import { loadPyodide } from "./pyodide/pyodide.mjs";
import { weights } from "./floats.js";

let respond = null;

// Every byte that is fetched counts towards the progress that the page shows. Pyodide goes on without a package that it
// cannot have, so the first file that was missing is remembered.
const real = self.fetch;
let loaded = 0, missing = null;
self.fetch = async (request, ...how) => {
  const response = await real(request, ...how).catch(() => null);
  if (!response?.ok) {
    const file = String(request.url ?? request).split("/").pop();
    missing ??= response ? `${file} is not on this host: status ${response.status}` : `${file} could not be fetched`;
    throw new Error(missing);
  }
  if (!response.body) return response;
  const counted = new TransformStream({ transform(chunk, out) {
    loaded += chunk.byteLength;
    postMessage({ loaded });
    out.enqueue(chunk);
  } });
  return new Response(response.body.pipeThrough(counted), { status: response.status, headers: response.headers });
};

async function load({ wheel, archive }) {
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", self.location).href, packages: [] });
  await python.loadPackage(new URL(wheel, self.location).href, { messageCallback: () => {}, checkIntegrity: false });
  try {
    python.pyimport("flint");
  } catch {
    missing ??= `${wheel} is damaged`;
    throw new Error(missing);
  }
  python.unpackArchive(await (await self.fetch(archive)).arrayBuffer(), "zip", { extractDir: "/farfield" });
  python.runPython("import sys; sys.path.insert(0, '/farfield')");
  const browser = python.pyimport("farfield.explorer.browser");
  browser.begin(weights);
  respond = browser.respond;
  respond("fields", JSON.stringify([["f", "-t"]])); // what is imported only once is imported now
  postMessage({ ready: true });
}

self.addEventListener("message", async ({ data }) => {
  try {
    if (data.load) await load(data.load);
    else postMessage({ id: data.id, reply: JSON.parse(respond(data.kind, JSON.stringify(data.fields))) });
  } catch (error) {
    postMessage({ id: data.id, fault: missing ?? String(error.message ?? error).trim().split("\n").pop() });
  }
});
