// What the page shows and what it sends: one small state machine.
//
// The server announces what follows each answer, so the next example is shown before the server has
// the answer to the one before. Its reply then confirms what is shown, or replaces it.
//
//   empty     nothing is left to ask
//   ready     the server knows what is shown; an answer is sent at once
//   waiting   a request is under way
//   keeping   a request is under way, and an answer to what is shown is kept until the reply
//   undoing   an undo is under way, or kept until the reply; answers have to wait
//   swapped   another example has just taken the place of the one shown; for a moment an answer
//             does not count, because it would be meant for the former
//
// The table names the method that handles each event in each state. Other events are ignored.

const TABLE = {
  empty: { begin: "fetch", freed: "fetch", undo: "sendUndo" },
  ready: { begin: "fetch", answer: "sendAnswer", undo: "sendUndo" },
  waiting: { begin: "forget", answer: "keepAnswer", undo: "keepUndo", reply: "settle", failure: "recover" },
  keeping: { begin: "forget", answer: "keepAnswer", undo: "dropAnswer", reply: "sendKept", failure: "recover" },
  undoing: { begin: "forget", answer: "refuse", undo: "keepUndo", reply: "settleUndo", failure: "recover" },
  swapped: { begin: "fetch", undo: "sendUndo", settled: "resume" },
};
const SWAP_MS = 500;

export class Queue {
  // post: sends a request; show: an example, or null if nothing is left, or why; say: a note;
  // report: an error; onState: the new state.
  constructor({ post, show, say, report, onState }) {
    Object.assign(this, { post, show, say, report, onState });
    this.state = "empty";
    this.shown = null; // the example
    this.ahead = {}; // what follows each answer to it
    this.answered = []; // the ids of the answers that can be undone from here, the last one last
    this.kept = null; // the answer that is sent after the reply
    this.undos = 0; // how many undos are sent after the reply
  }

  on(event, detail) {
    const handler = TABLE[this.state][event];
    if (handler) this[handler](detail);
  }

  get isBusy() { return ["waiting", "keeping", "undoing"].includes(this.state); }

  become(state) {
    this.state = state;
    this.onState(state);
  }

  display(example, problem) {
    this.shown = example;
    this.show(example, problem);
  }

  // Sends a request; its outcome is an event. "before" is shown again if it fails. If the reply is
  // expected to bring another example, that is not a swap.
  async send(path, body, { before = this.shown, isExpected = false, onReply = () => {} } = {}) {
    this.become("waiting");
    let reply;
    try {
      reply = await this.post(path, body);
    } catch (error) {
      return this.on("failure", { error, before });
    }
    onReply(reply);
    this.on("reply", { ...reply, isExpected });
  }

  fetch() {
    this.forget();
    this.send("/api/next?ahead=true");
  }

  forget() { this.answered = []; }

  // An answer is { name } for a class, or { cannotTell } for a skip.
  sendAnswer(answer) {
    const before = this.shown, { id } = before;
    this.say(describe(id, answer));
    const next = this.ahead[answer.name ?? ""];
    if (next) this.display(next);
    const [path, body] = answer.name === undefined
      ? ["/api/skip?ahead=true", { id, cannot_tell: answer.cannotTell }]
      : ["/api/label?ahead=true", { labels: { [id]: answer.name } }];
    this.send(path, body, { before, isExpected: !next, onReply: () => this.answered.push(id) });
  }

  keepAnswer(answer) {
    if (!this.shown) return;
    this.kept = { id: this.shown.id, answer };
    this.say(`${describe(this.shown.id, answer)} Waiting for the server.`);
    this.become("keeping");
  }

  dropAnswer() {
    this.say(`${this.kept.id}: undone.`);
    this.kept = null;
    this.become("waiting");
  }

  sendKept(reply) {
    const { id, answer } = this.kept;
    this.kept = null;
    this.settle(reply);
    if (this.shown?.id === id) this.sendAnswer(answer);
    else this.say(`${id} went to another annotator. Your answer was not sent.`);
  }

  sendUndo() {
    const id = this.answered[this.answered.length - 1] ?? null;
    this.send("/api/undo?ahead=true", { id }, {
      isExpected: true,
      onReply: ({ undone }) => {
        this.answered.pop();
        this.say(undone === null ? "There is nothing to undo." : `${undone}: undone.`);
      },
    });
    this.become("undoing");
  }

  keepUndo() {
    this.undos += 1;
    this.say("Undo: waiting for the server.");
    this.become("undoing");
  }

  settleUndo(reply) {
    this.settle(reply);
    if (!this.undos) return;
    this.undos -= 1;
    this.sendUndo();
  }

  refuse() { this.say("Wait until the undo is done."); }

  settle({ example, ahead, problem, isExpected }) {
    this.ahead = ahead;
    if (problem) this.display(null, problem); // the answer is stored, and no question follows
    this.replace(example, isExpected);
  }

  recover({ error, before }) {
    this.kept = null;
    this.undos = 0;
    this.report(error);
    if (error.status === 409) this.fetch(); // another annotator has the example now
    else this.replace(before);
  }

  // Shows what the server knows to be shown.
  replace(example, isExpected = false) {
    const seen = this.shown;
    const isOther = example?.id !== seen?.id;
    if (isOther) this.display(example);
    if (!example) return this.become("empty");
    if (!isOther || isExpected || !seen) return this.become("ready");
    this.become("swapped");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.on("settled"), SWAP_MS);
  }

  resume() { this.become("ready"); }
}

function describe(id, { name, cannotTell }) {
  if (name !== undefined) return `Last answer: ${id} is ${name}.`;
  return cannotTell ? `Last answer: can’t tell ${id}.` : `Skipped ${id}.`;
}
