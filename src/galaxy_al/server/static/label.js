// One example after the other: what is on the stage, the buttons and the keys.

import { post } from "./api.js";
import { Queue } from "./queue.js";
import { Note, Zoom, content, element, preload } from "./show.js";

const byId = (id) => document.getElementById(id);
const SLOW_MS = 400;

export class LabelView {
  constructor(onProblem) {
    this.stage = byId("stage");
    this.zoom = new Zoom(this.stage);
    this.note = new Note(byId("note"));
    this.queue = new Queue({
      post: (path, body) => post(path, body).then((reply) => {
        Object.values(reply.ahead).forEach(preload);
        return reply;
      }),
      show: (example, problem) => this.show(example, problem),
      say: (text) => this.note.say(text),
      report: onProblem,
      onState: () => this.markSlow(),
    });
    this.onProblem = onProblem;
    byId("undo").addEventListener("click", () => this.undo());
    byId("skip").addEventListener("click", () => this.skip(false));
    byId("cannot-tell").addEventListener("click", () => this.skip(true));
  }

  setClasses(classes) {
    this.classes = classes;
    byId("classes").replaceChildren(...classes.map((name, i) => classButton(name, i, () => this.answer(name))));
  }

  begin() { this.queue.on("begin"); }

  // Another annotator has skipped, undone or left: perhaps there is something to ask again.
  beginAgain() { this.queue.on("freed"); }

  answer(name) { this.queue.on("answer", { name }); }

  skip(cannotTell) { this.queue.on("answer", { cannotTell }); }

  undo() { this.queue.on("undo"); }

  // After a restart the server does not know what is shown here. If it cannot be answered any more,
  // another example comes.
  async stayHere() {
    if (this.queue.isBusy) return;
    const id = this.queue.shown?.id ?? null;
    await post("/api/here", { id }).catch((error) => {
      if (error.status !== 409 || this.queue.isBusy || id !== this.queue.shown?.id) return;
      this.onProblem(error);
      this.begin();
    });
  }

  // A request that is quick is not shown.
  markSlow() {
    if (!this.queue.isBusy) {
      clearTimeout(this.slow);
      this.slow = null;
      this.stage.classList.remove("waiting");
    } else this.slow ??= setTimeout(() => this.stage.classList.add("waiting"), SLOW_MS);
  }

  show(example, problem) {
    this.stage.replaceChildren(example ? content(example) : element("p", {
      className: "done",
      textContent: problem || "Nothing is left to ask. Continue with galaxy-al export or galaxy-al train.",
    }));
    byId("caption").textContent = example?.id ?? "";
    byId("announce").textContent = example ? `Now ${example.text ?? example.id}` : problem || "Nothing is left to ask.";
    this.zoom.reset();
  }

  key(event) {
    const name = classOf(event, this.classes);
    const key = event.key.toLowerCase();
    if (name !== undefined) this.answer(name);
    else if (key === "u" || key === "backspace") this.undo();
    else if (key === "s") this.skip(false);
    else if (key === "t") this.skip(true);
    else if (key === "k") byId("like-this").click();
    else if (key === "+" || key === "=") this.zoom.by(1.5);
    else if (key === "-") this.zoom.by(1 / 1.5);
    else return this.zoom.move(event.key);
    return true;
  }
}

const KEYS = "1234567890";
const OTHER_KEYS = "+-=?";

// Also by the place of the key, unless it means something else: some keyboards need Shift for digits.
export function classOf({ key, code }, classes) {
  if (OTHER_KEYS.includes(key)) return undefined;
  const digit = KEYS.includes(key) ? key : /^Digit(\d)$/.exec(code)?.[1];
  return digit === undefined ? undefined : classes[KEYS.indexOf(digit)];
}

export function classButton(name, index, onClick) {
  const button = element("button", { type: "button", className: "class" });
  button.classList.add(`c${index % 8}`);
  if (index < KEYS.length) {
    button.append(element("kbd", { textContent: KEYS[index] }), " ");
    button.setAttribute("aria-keyshortcuts", KEYS[index]);
  }
  button.append(element("span", { textContent: name }));
  button.addEventListener("click", onClick);
  return button;
}
