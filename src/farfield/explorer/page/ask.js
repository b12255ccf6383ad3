// Questions: one at a time from each place, and always the latest.

import { ask } from "./backend.js";

const PATIENCE = 400; // milliseconds that an overtaken question may still take

export class Asker {
  // answered(answer, fields), failed(error, fields)
  constructor(kind, answered, failed) {
    Object.assign(this, { kind, answered, failed, running: null, next: null });
  }

  ask(fields) {
    this.next = fields;
    this.stopped = false;
    if (!this.running) this.#run();
    else if (!this.timer) this.timer = setTimeout(() => this.running?.abort(), PATIENCE);
  }

  // Nobody wants the answer any more; a later question may still be asked.
  stop() {
    this.next = null;
    this.stopped = true;
    this.running?.abort();
  }

  async #run() {
    const fields = this.next;
    const running = new AbortController();
    this.next = null;
    this.running = running;
    try {
      const answer = await ask(this.kind, fields, running.signal);
      if (!this.stopped) this.answered(answer, fields);
    } catch (error) {
      if (error.name !== "AbortError" && !this.stopped && !this.next) this.failed(error, fields);
    } finally {
      clearTimeout(this.timer);
      this.timer = null;
      this.running = null;
      if (this.next) this.#run();
    }
  }
}
