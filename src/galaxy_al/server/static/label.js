// One example after the other. The next one is shown at once: the server has said what it asks
// after each answer. Its own answer then confirms that, or corrects it if somebody else has taken
// that example under Find or on the grid.

import { post } from "./api.js";
import { Zoom, content, element, preload } from "./show.js";

const byId = (id) => document.getElementById(id);

export class LabelView {
  constructor(onProblem) {
    this.onProblem = onProblem;
    this.stage = byId("stage");
    this.zoom = new Zoom(this.stage);
    this.current = null;
    this.ahead = {};
    this.isWaiting = false;
    this.isSwapped = false;
    this.kept = null;
    byId("undo").addEventListener("click", () => this.undo());
    byId("skip").addEventListener("click", () => this.skip(false));
    byId("cannot-tell").addEventListener("click", () => this.skip(true));
  }

  setClasses(classes) {
    this.classes = classes;
    byId("classes").replaceChildren(...classes.map((name, i) => classButton(name, i, () => this.answer(name))));
  }

  begin() { return this.ask(() => post("/api/next?ahead=true")); }

  answer(name) {
    if (!this.current || this.isSwapped) return;
    const { id } = this.current;
    this.move(id, name, `${id}: ${name}.`, () => post("/api/label?ahead=true", { labels: { [id]: name } }));
  }

  skip(cannotTell) {
    if (!this.current || this.isSwapped) return;
    const { id } = this.current;
    const said = cannotTell ? `${id}: can’t tell.` : `${id}: skipped.`;
    this.move(id, "", said, () => post("/api/skip?ahead=true", { id, cannot_tell: cannotTell }));
  }

  undo() {
    if (this.kept) {
      this.kept = null;
      this.say(`${this.current?.id}: taken back.`);
      return;
    }
    if (this.isWaiting) {
      this.kept = () => this.undo();
      return;
    }
    this.ask(async () => {
      const back = await post("/api/undo?ahead=true");
      this.say(back.undone === null ? "There is nothing to undo." : `${back.undone}: taken back.`);
      return back;
    });
  }

  // Show what comes, as the server has foretold, and then hear whether it is so. An answer to what
  // is shown before the server has confirmed it is kept until it has.
  move(id, answer, said, request) {
    if (this.isWaiting) {
      this.kept = () => {
        if (id === this.current?.id) this.move(id, answer, said, request);
        else this.say(`${id} went to somebody else: the answer was not sent.`);
      };
      this.say(`${said} It is sent as soon as the line is free.`);
      return;
    }
    const before = this.current;
    this.say(said);
    if (id === before?.id && this.ahead[answer]) this.show(this.ahead[answer]);
    this.ask(request, before);
  }

  async ask(request, before) {
    this.setWaiting(true);
    try {
      const { example, ahead } = await request();
      this.ahead = ahead;
      if (example?.id !== this.current?.id) this.swap(example, before);
      Object.values(ahead).forEach(preload);
    } catch (error) {
      this.kept = null;
      if (before) this.show(before);
      this.onProblem(error);
      if (error.status === 409) await this.begin();
    } finally {
      this.setWaiting(false);
    }
    const kept = this.kept;
    this.kept = null;
    kept?.();
  }

  // Another example than the one foretold: for a moment no answer counts, as it would be one to
  // what was seen before.
  swap(example, before) {
    const isForetold = before && this.current && this.current !== before;
    this.show(example);
    if (!isForetold) return;
    this.isSwapped = true;
    setTimeout(() => { this.isSwapped = false; }, 500);
  }

  setWaiting(isWaiting) {
    this.isWaiting = isWaiting;
    clearTimeout(this.slow);
    // What is quick needs no sign.
    if (isWaiting) this.slow = setTimeout(() => this.stage.classList.add("waiting"), 400);
    else this.stage.classList.remove("waiting");
  }

  show(example) {
    this.current = example;
    this.stage.replaceChildren(example ? content(example) : element("p", {
      className: "done", textContent: "Nothing is left to ask.",
    }));
    byId("caption").textContent = example?.id ?? "";
    byId("announce").textContent = example ? `Now ${example.text ?? example.id}` : "Nothing is left to ask.";
    this.zoom.reset();
  }

  say(text) { byId("note").textContent = text; }

  key(event) {
    const name = classOf(event.key, this.classes);
    if (name !== undefined) this.answer(name);
    else if (event.key === "u" || event.key === "Backspace") this.undo();
    else if (event.key === "s") this.skip(false);
    else if (event.key === "t") this.skip(true);
    else if (event.key === "k") byId("like-this").click();
    else if (event.key === "+" || event.key === "=") this.zoom.by(1.5);
    else if (event.key === "-") this.zoom.by(1 / 1.5);
    else return this.zoom.move(event.key);
    return true;
  }
}

const KEYS = "1234567890";

export const classOf = (key, classes) => (key.length === 1 ? classes[KEYS.indexOf(key)] : undefined);

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
