// Showing an example: an image that can be zoomed, a sound, a text, or a vector as bars.

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

export function content(example, side) {
  if (example.image) {
    const image = element("img", { alt: `Example ${example.id}`, draggable: false });
    image.src = side ? `${example.image}&side=${side}` : example.image;
    image.addEventListener("error", () => image.replaceWith(element("p", { textContent: "This image cannot be shown." })));
    return image;
  }
  if (example.audio) return element("audio", { controls: true, src: example.audio, ariaLabel: `Example ${example.id}` });
  if (example.text !== undefined && example.text !== null) {
    return element("p", { className: "text", textContent: example.text });
  }
  return vector(example);
}

function vector({ id, vector: numbers, width }) {
  const most = Math.max(...numbers.map(Math.abs), 1e-9);
  const step = 100 / numbers.length;
  const bars = numbers.map((number, i) => {
    const height = (Math.abs(number) / most) * 19;
    return svg("rect", {
      x: i * step, width: step * 0.85, height,
      y: number > 0 ? 20 - height : 20, class: number > 0 ? "above" : "below",
    });
  });
  const shown = numbers.length < width ? `the first ${numbers.length} of ${width}` : `${width}`;
  return svg("svg", {
    viewBox: "0 0 100 40", preserveAspectRatio: "none", class: "vector", role: "img",
    "aria-label": `Example ${id}, ${shown} numbers`,
  }, ...bars);
}

// One line of text, and what it is about, so that it can be cleared when that is over.
export class Note {
  constructor(node) { this.node = node; }

  say(text, about = "") {
    this.node.textContent = text;
    this.about = about;
  }

  clear(about) { if (this.about === about) this.say(""); }
}

export const preload = (example) => {
  if (example?.image) new Image().src = example.image;
};

// An image in a stage: wheel, click and keys zoom, dragging moves.
export class Zoom {
  constructor(stage) {
    this.stage = stage;
    this.reset();
    stage.addEventListener("wheel", (event) => {
      if (!this.image) return;
      event.preventDefault();
      this.by(event.deltaY < 0 ? 1.25 : 0.8);
    }, { passive: false });
    stage.addEventListener("pointerdown", (event) => {
      if (!this.image) return;
      this.from = { x: event.clientX - this.x, y: event.clientY - this.y, moved: false };
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener("pointermove", (event) => {
      if (!this.from) return;
      const x = event.clientX - this.from.x, y = event.clientY - this.from.y;
      if (Math.hypot(x - this.x, y - this.y) > 3) this.from.moved = true;
      if (this.from.moved && this.scale > 1) { this.x = x; this.y = y; this.draw(); }
    });
    stage.addEventListener("pointerup", () => {
      if (this.from && !this.from.moved) this.scale > 1 ? this.reset() : this.by(2.5);
      this.from = null;
    });
    stage.addEventListener("pointercancel", () => { this.from = null; });
  }

  get image() { return this.stage.querySelector("img"); }

  reset() { this.scale = 1; this.x = this.y = 0; this.draw(); }

  by(factor) {
    const scale = Math.min(Math.max(this.scale * factor, 1), 12);
    const ratio = scale / this.scale;
    this.scale = scale;
    this.x = scale === 1 ? 0 : this.x * ratio;
    this.y = scale === 1 ? 0 : this.y * ratio;
    this.draw();
  }

  move(key) {
    const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (!(key in steps) || this.scale === 1) return false;
    this.x += steps[key][0];
    this.y += steps[key][1];
    this.draw();
    return true;
  }

  draw() {
    const image = this.image;
    if (!image) return;
    image.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
    this.stage.classList.toggle("zoomed", this.scale > 1);
  }
}
