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
    this.kept = null; // what was said meanwhile: an answer, or so many undos
    this.said = []; // what can be undone from here, the last one last
    byId("undo").addEventListener("click", () => this.undo());
    byId("skip").addEventListener("click", () => this.skip(false));
    byId("cannot-tell").addEventListener("click", () => this.skip(true));
  }

  setClasses(classes) {
    this.classes = classes;
    byId("classes").replaceChildren(...classes.map((name, i) => classButton(name, i, () => this.answer(name))));
  }

  begin() {
    this.said = [];
    return this.ask(() => post("/api/next?ahead=true"));
  }

  // After a restart the server does not know what is looked at here. If it is not to be had any
  // more, another one comes.
  async stillHere() {
    const id = this.current?.id ?? null;
    if (this.isWaiting) return;
    await post("/api/here", { id }).catch((error) => {
      if (error.status === 409 && id === this.current?.id && !this.isWaiting) {
        this.onProblem(error);
        this.begin();
      }
    });
  }

  // Somebody has skipped, undone or left since: perhaps there is something to ask again.
  beginAgain() {
    if (!this.current && !this.isWaiting) this.begin();
  }

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
    if (this.kept?.answer) {
      this.kept = null;
      this.say(`${this.current?.id}: taken back.`);
      return;
    }
    if (this.isWaiting) {
      this.kept = { undos: (this.kept?.undos ?? 0) + 1 };
      this.say("Taken back as soon as the line is free.");
      return;
    }
    const id = this.said[this.said.length - 1] ?? null;
    this.ask(async () => {
      const back = await post("/api/undo?ahead=true", { id });
      this.said.pop();
      this.say(back.undone === null ? "There is nothing to undo." : `${back.undone}: taken back.`);
      return back;
    }, { isExpected: true });
  }

  // Show what comes, as the server has foretold, and then hear whether it is so. An answer to what
  // is shown before the server has confirmed it is kept until it has.
  move(id, answer, said, request) {
    if (this.isWaiting) {
      if (this.kept?.undos) return this.say("The undo comes first.");
      this.kept = { id, answer: () => this.move(id, answer, said, request) };
      return this.say(`${said} It is sent as soon as the line is free.`);
    }
    const before = this.current;
    this.say(said);
    const next = this.ahead[answer];
    if (next) this.show(next);
    this.ask(async () => {
      const following = await request();
      this.said.push(id);
      return following;
    }, { before, isExpected: !next });
  }

  async ask(request, { before = null, isExpected = false } = {}) {
    this.setWaiting(true);
    try {
      const { example, ahead } = await request();
      this.ahead = ahead;
      this.swap(example, isExpected);
      Object.values(ahead).forEach(preload);
    } catch (error) {
      this.kept = null;
      this.onProblem(error);
      if (error.status === 409) await this.begin();
      else if (before) this.swap(before);
    } finally {
      this.setWaiting(false);
    }
    this.goOn();
  }

  // Do what was said while the line was busy.
  goOn() {
    const kept = this.kept;
    this.kept = null;
    if (kept?.undos) {
      if (kept.undos > 1) this.kept = { undos: kept.undos - 1 };
      this.undo();
    } else if (kept && kept.id === this.current?.id) kept.answer();
    else if (kept) this.say(`${kept.id} went to somebody else: the answer was not sent.`);
  }

  // Unless it was to be expected, another example than the one seen lets no answer count for a
  // moment: it would be one to what was seen before.
  swap(example, isExpected = false) {
    const seen = this.current;
    if (example?.id === seen?.id) return;
    this.show(example);
    if (isExpected || !seen) return;
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
      className: "done", textContent: "Nothing is left to ask. galaxy-al export and galaxy-al train take it from here.",
    }));
    byId("caption").textContent = example?.id ?? "";
    byId("announce").textContent = example ? `Now ${example.text ?? example.id}` : "Nothing is left to ask.";
    this.zoom.reset();
  }

  say(text) { byId("note").textContent = text; }

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

// By the key's place, too, unless it means something else: some keyboards have digits with Shift.
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
