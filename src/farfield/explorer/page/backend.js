// Who answers: the server of `farfield explore`, or, on a page without one, a worker of this browser.

import * as browser from "./static.js";

const STATIC = document.querySelector("meta[name=farfield-static]") !== null;

// What the page needs first: the zoo, and the results of a study if there are some.
export function start() {
  return STATIC ? browser.start() : get("api/start");
}

// The answer to a question, or an error with one sentence.
export function ask(kind, fields, signal) {
  if (STATIC) return browser.ask(kind, fields, signal);
  return kind === "inspect" // a configuration is too long for an address
    ? get(`api/${kind}`, [], { signal, method: "POST", body: JSON.stringify(fields) })
    : get(`api/${kind}`, fields, { signal });
}

async function get(path, fields = [], how = {}) {
  const query = new URLSearchParams(fields);
  let response, data;
  try {
    response = await fetch(`${path}?${query}`, { ...how, headers: { accept: "application/json" } });
    data = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const words = "the explorer does not answer: is `farfield explore` still running?";
    throw Object.assign(new Error(words), { unanswered: true });
  }
  if (!response.ok) {
    const kind = { late: response.status === 504, unanswered: response.status === 503 };
    throw Object.assign(new Error(data.error || "no answer"), { pointer: data.pointer, ...kind });
  }
  return data;
}
