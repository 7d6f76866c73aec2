// Many examples at once: the likeliest of a class, examples like another one, or a walk.

import { get, post, send } from "./api.js";
import { classButton, classOf } from "./label.js";
import { Note, content, element } from "./show.js";

const byId = (id) => document.getElementById(id);

export class GridView {
  constructor(onProblem) {
    this.onProblem = onProblem;
    this.note = new Note(byId("tile-note"));
    this.selected = new Set();
    byId("grid-tools").addEventListener("submit", (event) => {
      event.preventDefault();
      this.likeliest();
    });
    byId("grid-class").addEventListener("change", () => this.likeliest());
    byId("find-text").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = byId("find-text-input").value.trim();
      if (!text) this.say("Type some words first.");
      else this.load(() => get("/api/like-text", { text }), "Like your text");
    });
    byId("find-image-input").addEventListener("change", (event) => {
      const file = event.target.files[0];
      if (file) this.load(() => send("/api/like-image", file), `Like ${file.name}`);
    });
    byId("walk").addEventListener("click", () => this.walk());
    byId("grid").addEventListener("keydown", (event) => this.move(event));
  }

  setProject({ classes, searched_by: searchedBy }) {
    this.classes = classes;
    byId("grid-class").replaceChildren(...classes.map((name) => element("option", { value: name, textContent: name })));
    byId("tile-classes").replaceChildren(...classes.map((name, i) => classButton(name, i, () => this.label(name))));
    byId("find-text").hidden = !searchedBy.includes("text");
    byId("find-image").hidden = !searchedBy.includes("image");
  }

  likeliest() {
    const label = byId("grid-class").value;
    const at = this.classes.indexOf(label);
    const title = ({ proba }) => (proba.some((row) => row[at] > 0) ? `Most likely ${label}` : `No example of ${label} is labelled yet, so these are in no particular order`);
    return this.load(() => get("/api/likeliest", { label }), title, at);
  }

  like(id) { return this.load(() => get("/api/like", { id }), `Like ${id}`); }

  // If several searches are under way, only the newest counts.
  async newest(request) {
    const mine = (this.latest = (this.latest ?? 0) + 1);
    this.say("Searching…");
    try {
      const found = await request();
      return mine === this.latest ? found : null;
    } catch (error) {
      if (mine === this.latest) {
        this.say("");
        this.onProblem(error);
      }
      return null;
    }
  }

  // The tiles show how likely the class at an index is; by default, each one's likeliest class.
  async load(request, title, at) {
    const found = await this.newest(request);
    if (!found) return;
    const { examples, proba } = found;
    this.show(examples.map((example, i) => this.tile(example, proba[i], at)));
    const what = typeof title === "string" ? title : title(found);
    if (!examples.length) return this.say(`${what}: no unlabelled example is left.`);
    this.say(`${what}: ${examples.length} unlabelled. Select some, then press a class.`);
  }

  async walk(id, radius) {
    byId("walk-path").textContent = id ? `around ${id}` : "the whole pool";
    const found = await this.newest(() => get("/api/walk", id ? { id, radius } : {}));
    if (!found) return;
    this.show(found.examples.map((example, i) => this.step(example, found.sizes[i])));
    byId("tile-classes").hidden = true;
    this.say("The most central example of each cluster. Open one, or find more like it.");
  }

  show(tiles) {
    this.selected.clear();
    byId("tile-classes").hidden = false;
    byId("grid").replaceChildren(...tiles);
    if (!tiles.length) byId("grid").append(element("li", { className: "hint", textContent: "Nothing is left." }));
  }

  tile(example, proba, at) {
    const button = element("button", { type: "button", className: "tile" }, content(example, 320));
    button.dataset.id = example.id;
    button.setAttribute("aria-pressed", "false");
    button.append(element("span", { className: "caption", textContent: proba ? this.guess(proba, at) : "" }));
    button.addEventListener("click", () => this.select(button));
    return element("li", {}, button);
  }

  guess(proba, at = proba.indexOf(Math.max(...proba))) {
    const percent = proba[at] * 100;
    const digits = percent > 0 && percent < 1 ? 1 : 0;
    return `${this.classes[at]} ${percent > 0 && percent < 0.05 ? "under 0.1" : percent.toFixed(digits)}%`;
  }

  step(example, size) {
    const enter = element("button", { type: "button", className: "tile" }, content(example, 320),
      element("span", { className: "caption", textContent: `${size.toLocaleString()} examples` }));
    enter.addEventListener("click", () => (size > 24 ? this.walk(example.id, size) : this.like(example.id)));
    const more = element("button", { type: "button", className: "more", textContent: "Find like this" });
    more.addEventListener("click", () => this.like(example.id));
    return element("li", {}, enter, more);
  }

  select(button) {
    const { id } = button.dataset;
    const isOn = !this.selected.has(id);
    if (isOn) this.selected.add(id);
    else this.selected.delete(id);
    button.setAttribute("aria-pressed", String(isOn));
    this.say(this.selected.size ? `${this.selected.size} selected.` : "");
  }

  async label(name) {
    if (!this.selected.size) return this.say("Select some examples first.");
    const ids = [...this.selected];
    try {
      await post("/api/label", { labels: Object.fromEntries(ids.map((id) => [id, name])), source: "found" });
    } catch (error) {
      return this.onProblem(error);
    }
    for (const tile of byId("grid").querySelectorAll(".tile")) {
      if (ids.includes(tile.dataset.id)) tile.parentElement.remove();
    }
    ids.forEach((id) => this.selected.delete(id));
    this.say(`${ids.length} labelled ${name}.`);
    byId("grid").querySelector(".tile")?.focus();
  }

  move(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    const tiles = [...byId("grid").querySelectorAll(".tile")];
    const at = tiles.indexOf(document.activeElement);
    if (at < 0 || !(event.key in steps)) return;
    tiles[Math.min(Math.max(at + steps[event.key], 0), tiles.length - 1)].focus();
    event.preventDefault();
  }

  say(text) { this.note.say(text); }

  key(event) {
    const name = classOf(event, this.classes);
    if (name !== undefined) this.label(name);
    return name !== undefined;
  }
}
