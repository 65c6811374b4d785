// The server, and the answers that it does not have yet: they stay in this browser until it says that they are recorded.

const PATIENCE = 15000, RETRY = 1000; // milliseconds

export const token = location.hash.slice(1);

export async function call(path, body) {
  const answer = await fetch(`/api/${path}`, {
    method: body ? "POST" : "GET",
    headers: { Authorization: `Bearer ${token}` },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(PATIENCE),
  });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(said.error || answer.statusText), { status: answer.status });
}

export const get = async (path) => (await call(path)).json();

/** The name of an answer. The server records each name once, however often it comes. */
function newName() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Outbox {
  #key = `distboost answers ${token.slice(0, 12)}`;
  #isSending = false;

  /** changed(problem): after each attempt; refused(answer, why): an answer that cannot be recorded. */
  constructor(changed, refused) {
    this.changed = changed;
    this.refused = refused;
  }

  /** The answers that are here, in their order. Other tabs of this person have the same ones. */
  get waiting() {
    return JSON.parse(localStorage.getItem(this.#key) || "[]");
  }

  set waiting(answers) {
    localStorage.setItem(this.#key, JSON.stringify(answers));
  }

  add(answer) {
    this.waiting = [...this.waiting, { id: newName(), ...answer }];
    this.send();
  }

  async send() {
    if (this.#isSending) return;
    this.#isSending = true;
    let problem = "";
    try {
      for (let some; (some = this.waiting.slice(0, 50)).length; ) {
        const { refused } = await (await call("answers", { answers: some })).json();
        const sent = new Set(some.map((one) => one.id));
        this.waiting = this.waiting.filter((one) => !sent.has(one.id));
        for (const one of some) if (one.id in refused) this.refused(one, refused[one.id]);
      }
    } catch (error) {
      problem = error.status ? error.message : "The server is away.";
      setTimeout(() => this.send(), RETRY);
    }
    this.#isSending = false;
    this.changed(problem);
  }
}
