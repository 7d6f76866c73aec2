// A second look: suspected errors, duplicates with different labels, and disagreements, one by one.

import { get, post } from "./api.js";
import { classButton, classOf } from "./label.js";
import { Note, Zoom, content, element } from "./show.js";

const MOST = 200; // at once
const byId = (id) => document.getElementById(id);
const keyOf = (item) => `${item.reason} ${item.examples.map(({ example }) => example.id).join(" ")}`;

export class ReviewView {
  constructor(onProblem) {
    this.onProblem = onProblem;
    this.note = new Note(byId("review-note"));
    this.stage = byId("review-stage");
    this.zoom = new Zoom(this.stage);
    this.items = [];
    this.at = 0;
    this.decisions = []; // what can be undone, the last one last
    byId("keep").addEventListener("click", () => this.keep());
    byId("review-cannot-tell").addEventListener("click", () => this.cannotTell());
    byId("review-undo").addEventListener("click", () => this.undo());
    byId("previous").addEventListener("click", () => this.move(-1));
    byId("next").addEventListener("click", () => this.move(1));
  }

  setClasses(classes) {
    this.classes = classes;
    byId("review-classes").replaceChildren(
      ...classes.map((name, i) => classButton(name, i, () => this.label(name))));
  }

  get item() { return this.items[this.at]; }

  begin() {
    this.items = [];
    this.at = 0;
    this.note.say("");
    return this.load();
  }

  // The status says how many there are now.
  expect(count) {
    if (count === this.expected) return;
    this.expected = count;
    this.load();
  }

  // What is shown stays, even if it is settled by now. What was fetched before a decision is late.
  async load() {
    const mine = (this.latest = (this.latest ?? 0) + 1);
    try {
      const { items } = await get("/api/review", { count: MOST });
      if (mine !== this.latest) return;
      const shown = this.item;
      const at = shown ? items.findIndex((item) => keyOf(item) === keyOf(shown)) : 0;
      this.items = items;
      if (at >= 0) this.at = at;
      else { // settled meanwhile

        this.at = Math.min(this.at, items.length);
        items.splice(this.at, 0, shown);
      }
      this.show(this.isDrawn && JSON.stringify(shown) === JSON.stringify(this.item));
    } catch (error) {
      this.onProblem(error);
    }
  }

  show(isSame = false) {
    const item = this.item;
    this.isDrawn = item !== undefined;
    byId("review-place").textContent = item ? `${this.at + 1} of ${this.items.length}` : "";
    for (const id of ["previous", "next"]) byId(id).disabled = this.items.length < 2;
    if (isSame) return;
    const isGroup = item?.reason === "duplicates";
    byId("review-why").textContent = item?.sentence ?? "";
    byId("review-item").hidden = !item;
    byId("review-nothing").hidden = Boolean(item);
    this.stage.hidden = isGroup;
    byId("review-group").hidden = !isGroup;
    byId("review-all").hidden = !isGroup;
    byId("review-keep-what").textContent = isGroup ? "Keep all labels" : "Keep the label";
    if (!item) return;
    this.mark(item);
    if (isGroup) {
      byId("review-group").replaceChildren(...item.examples.map((one) => element("li", { className: "copy" },
        content(one.example, 640), element("span", { className: "caption", textContent: one.example.id }), said(one))));
      byId("review-said").replaceChildren();
      byId("review-caption").textContent = "";
      return;
    }
    const [one] = item.examples;
    this.stage.replaceChildren(content(one.example));
    this.zoom.reset();
    byId("review-caption").textContent = one.example.id;
    byId("review-said").replaceChildren(said(one));
  }

  // The labels there are, and what the model thinks, on the buttons of the classes.
  mark({ examples, suggested }) {
    const given = new Set(examples.map(({ label }) => label));
    for (const [i, button] of [...byId("review-classes").children].entries()) {
      const name = this.classes[i];
      const tags = [given.has(name) ? "now" : "", name === suggested ? "model" : ""].filter(Boolean);
      button.querySelector(".tag")?.remove();
      if (tags.length) button.append(element("span", { className: "tag", textContent: tags.join(", ") }));
    }
  }

  move(step) {
    const count = this.items.length;
    if (count < 2) return;
    this.at = (this.at + step + count) % count;
    this.note.say("");
    this.show();
  }

  label(name) {
    const ids = this.item?.examples.map(({ example }) => example.id) ?? [];
    const all = ids.length > 1 ? `All ${ids.length} are ${name}.` : `${ids[0]} is ${name}.`;
    return this.decide(Object.fromEntries(ids.map((id) => [id, name])), all);
  }

  keep() {
    const given = this.item?.examples.map(({ example, label }) => [example.id, label]) ?? [];
    return this.decide(Object.fromEntries(given), "Kept.");
  }

  decide(labels, text) {
    return this.send(Object.keys(labels), text, () => post("/api/label", { labels, source: "review" }));
  }

  async cannotTell() {
    const ids = this.item?.examples.map(({ example }) => example.id) ?? [];
    return this.send(ids, "Can’t tell.", async () => {
      for (const id of ids) await post("/api/skip", { id, cannot_tell: true, source: "review" });
    });
  }

  async send(ids, text, request) {
    if (!this.item || this.isBusy) return;
    this.isBusy = true;
    try {
      await request();
      this.latest += 1;
      this.decisions.push({ ids, item: this.item, at: this.at });
      this.items.splice(this.at, 1);
      if (this.at >= this.items.length) this.at = 0;
      this.show();
      this.note.say(text);
    } catch (error) {
      this.onProblem(error);
    } finally {
      this.isBusy = false;
    }
  }

  async undo() {
    if (this.isBusy) return;
    const last = this.decisions.pop();
    if (!last) return this.note.say("There is nothing to undo here.");
    this.isBusy = true;
    try {
      for (const id of [...last.ids].reverse()) await post("/api/undo", { id });
      this.latest += 1;
      this.at = Math.min(last.at, this.items.length);
      this.items.splice(this.at, 0, last.item);
      this.show();
      this.note.say("Undone.");
    } catch (error) {
      this.onProblem(error);
    } finally {
      this.isBusy = false;
    }
  }

  key(event) {
    const name = classOf(event, this.classes);
    const key = event.key.toLowerCase();
    if (name !== undefined) this.label(name);
    else if (key === "k") this.keep();
    else if (key === "t") this.cannotTell();
    else if (key === "u" || key === "backspace") this.undo();
    else if (key === "+" || key === "=") this.zoom.by(1.5);
    else if (key === "-") this.zoom.by(1 / 1.5);
    else if (this.zoom.move(event.key)) return true;
    else if (key === "arrowright" || key === "n") this.move(1);
    else if (key === "arrowleft" || key === "p") this.move(-1);
    else return false;
    return true;
  }
}

function said({ label, annotator, answers }) {
  const all = Object.entries(answers);
  const given = all.length ? all : [[annotator, label]];
  return element("p", { className: "said" }, ...given.flatMap(([name, answer], i) => [
    i ? " · " : "", `${name}: `, element("strong", { textContent: answer }),
  ]));
}
