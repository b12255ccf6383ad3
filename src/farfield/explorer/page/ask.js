// Questions to the server: one at a time from each place, and always the latest.

const PATIENCE = 400; // milliseconds that an overtaken question may still take

export async function get(path, fields = [], signal = undefined) {
  const query = new URLSearchParams(fields);
  const response = await fetch(`${path}?${query}`, { signal, headers: { accept: "application/json" } });
  const data = await response.json();
  if (!response.ok) throw Object.assign(new Error(data.error || "no answer"), { pointer: data.pointer });
  return data;
}

export class Asker {
  constructor(kind, answered, failed) {
    Object.assign(this, { kind, answered, failed, running: null, next: null });
  }

  ask(fields) {
    this.next = fields;
    if (!this.running) this.#run();
    else if (!this.timer) this.timer = setTimeout(() => this.running?.abort(), PATIENCE);
  }

  stop() {
    this.next = null;
    this.stopped = true;
    this.running?.abort();
  }

  async #run() {
    const fields = this.next;
    this.next = null;
    this.running = new AbortController();
    try {
      const answer = await get(`api/${this.kind}`, fields, this.running.signal);
      if (!this.stopped) this.answered(answer, fields);
    } catch (error) {
      const gone = error instanceof TypeError;
      if (gone) error = new Error("the explorer does not answer: is `farfield explore` still running?");
      if (error.name !== "AbortError" && !this.stopped && !this.next) this.failed(error);
    } finally {
      clearTimeout(this.timer);
      this.timer = null;
      this.running = null;
      if (this.next && !this.stopped) this.#run();
    }
  }
}
