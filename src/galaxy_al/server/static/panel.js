// What is shown beside the examples, redrawn after every change.

import { bar, draw as drawAudit } from "./audit.js";
import { element, svg } from "./show.js";

const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString();
const labels = (count) => `${number(count)} label${count === 1 ? "" : "s"}`;
const MOST_FORECAST = 1.5; // of the rest: a wide interval would flatten the curve
const percent = (value) => `${(value * 100).toFixed(value > 0 && value < 0.1 ? 1 : 0)}%`;

export function draw(status) {
  byId("project").textContent = status.project;
  model(status);
  counts(status);
  drawAudit(status);
  found(status);
  quality(status);
  rankings(status);
  people(status);
}

function model({ training, round, n_until_training: left, is_exploring, goal_summary, strategy }) {
  const how = is_exploring ? "only one class is known" : `trained in ${training.seconds.toFixed(1)} s`;
  let text = round ? `Round ${round}, ${how}. ` : "";
  if (training.is_running) text += "Training…";
  else if (training.problem) text = `The last training failed: ${training.problem}`;
  else text += `${round ? "The next" : "The first"} training starts after ${number(left)} more answer${left === 1 ? "" : "s"}.`;
  byId("model-state").textContent = text;
  byId("train").disabled = training.is_running;
  byId("asking").textContent = `Goal: ${goal_summary} ` + (is_exploring
    ? "Exploring: until two classes are known, half of the questions are random and half are unusual examples. If you know what a rare example looks like, search for it under Find."
    : `Asked by ${strategy}.`);
}

function counts({ classes, counts: by, missing, n_labels, n_cannot_tell, size }) {
  const most = Math.max(...Object.values(by), 1);
  const rows = classes.map((name, i) => {
    const amount = element("span", { className: `amount c${i % 8}`, hidden: !by[name] });
    amount.style.width = `${(by[name] / most) * 100}%`;
    return element("li", {}, element("span", { className: "name", textContent: name }),
      element("span", { className: "track" }, amount),
      element("span", { className: "value", textContent: number(by[name]) }));
  });
  const cannot = n_cannot_tell ? `, ${number(n_cannot_tell)} can’t tell` : "";
  rows.push(element("li", { className: "hint", textContent: `${number(n_labels)} of ${number(size)}${cannot}` }));
  const hints = Object.entries(missing).map(([name, text]) =>
    element("li", { className: "hint", textContent: `${name}: ${text}` }));
  byId("counts").replaceChildren(...rows, ...hints);
}

function found({ found: points, random, advice }) {
  const [n, rare] = points[points.length - 1];
  if (!n) return byId("found-chart").replaceChildren(
    element("p", { className: "hint", textContent: "Available after the first answer." }));
  const at = random ? random.share * n : null;
  const how = random?.by === "sample" ? `from ${number(random.n)} examples asked at random` : "by the model’s estimate";
  const text = `${number(rare)} rare in ${labels(n)}` +
    (random ? `; at random, about ${at < 10 ? at.toFixed(1) : Math.round(at)} (${how})` : "");
  const series = [{ points, name: "found" }];
  if (random) series.push({ points: [[0, 0], [n, at]], name: "random" });
  const ahead = advice.finds.filter((each) => each.found && each.n <= Math.max(n, 50));
  const future = ahead.map(({ n: more, found: { value, low, high } }) => [n + more, rare + value, rare + low, rare + high]);
  let band = null;
  if (future.length) {
    series.push({ points: [[n, rare], ...future.map(([x, value]) => [x, value])], name: "forecast" });
    band = [[n, rare, rare], ...future.map(([x, , low, high]) => [x, low, high])];
  }
  const certain = Math.max(rare, at ?? 0, 1, ...future.map(([, value]) => value));
  const highest = Math.max(certain, ...future.map(([, , , high]) => high));
  const most = Math.min(highest, MOST_FORECAST * certain);
  band = band?.map(([x, low, high]) => [x, low, Math.min(high, most)]) ?? null;
  byId("found-chart").replaceChildren(chart(series, band, text, [0, most]),
    element("p", { className: "hint", textContent: [text, advice.outlook].filter(Boolean).join(". ") }));
}

function quality({ rounds, advice, audit, is_exploring: isExploring }) {
  const known = rounds.filter((round) => round.accuracy !== null && round.insight);
  const text = advice.accuracy || (isExploring || !rounds.length
    ? "Available after the first training with two classes." : "Accuracy is not estimated for this head.");
  const { report } = audit;
  const hint = report?.n_answered && report.balanced_accuracy && advice.accuracy
    ? bar(report.balanced_accuracy, text) : element("p", { className: "hint", textContent: text });
  if (!known.length) return byId("quality-chart").replaceChildren(hint);
  const points = known.map((round) => [round.n_labels, round.accuracy]);
  const band = known.map((round) => [round.n_labels, round.low, round.high]);
  byId("quality-chart").replaceChildren(chart([{ points, name: "found" }], band, text, [0, 1], percent), hint);
}

function chart(series, band, label, [low, high], shown = (value) => number(Math.round(value))) {
  const width = 300, height = 110, left = 34, bottom = 18, top = 6;
  const xs = [...series.flatMap(({ points }) => points.map(([x]) => x)), ...(band ?? []).map(([x]) => x)];
  const most = Math.max(...xs, 1);
  const x = (value) => left + (value / most) * (width - left - 6);
  const y = (value) => height - bottom - ((value - low) / (high - low || 1)) * (height - bottom - top);
  const parts = [low, high].map((value) => svg("text", { x: left - 5, y: y(value) + 4, class: "axis end" },
    shown(value)));
  parts.push(svg("text", { x: width - 6, y: height - 3, class: "axis end" }, labels(most)));
  parts.push(svg("line", { x1: left, x2: width - 6, y1: y(low), y2: y(low), class: "frame" }));
  if (band) {
    const upper = band.map(([at, , most]) => `${x(at)},${y(most)}`);
    const lower = band.map(([at, least]) => `${x(at)},${y(least)}`).reverse();
    parts.push(svg("polygon", { points: [...upper, ...lower].join(" "), class: "band" }));
    if (band.length === 1) {
      const [at, least, most] = band[0];
      parts.push(svg("line", { x1: x(at), x2: x(at), y1: y(least), y2: y(most), class: "whisker" }));
    }
  }
  for (const { points, name } of series) {
    parts.push(svg("polyline", { points: points.map(([a, b]) => `${x(a)},${y(b)}`).join(" "), class: `curve ${name}` }));
    const [a, b] = points[points.length - 1];
    parts.push(svg("circle", { cx: x(a), cy: y(b), r: 2.5, class: `point ${name}` }));
  }
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart" }, ...parts);
}

function rankings({ rankings: all, classes, is_exploring }) {
  if (!all.length) {
    const text = is_exploring ? "Available when two classes are known." : "This strategy ranks no classes.";
    byId("rankings").replaceChildren(element("p", { className: "hint", textContent: text }));
    return;
  }
  byId("rankings").replaceChildren(...all.map((ranking) => oneRanking(ranking, classes)));
}

// The pool from the least to the most likely of a class. The scale is finest around the cut.
function oneRanking({ target, size, low, high, order, labels }, classes) {
  const width = 300, middle = (low + high) / 2;
  const scale = Math.max((high - low) / 2, size / 500, 1);
  const bent = (rank) => Math.asinh((rank - middle) / scale);
  const [first, last] = [bent(-1), bent(size)];
  const x = (rank) => 4 + ((bent(rank) - first) / (last - first)) * (width - 8);
  const free = Math.max(high - low - 1, 0);
  const state = free ? `${number(free)} examples left between the labels at the cut` : `cut found, searching around it${order > 1 ? `, order ${number(order)}` : ""}`;
  const name = classes[target];
  const ticks = labels.map(([rank, isTarget]) => svg("line", {
    x1: x(rank), x2: x(rank), y1: isTarget ? 4 : 18, y2: isTarget ? 16 : 30, class: isTarget ? "of-class" : "not-of-class",
  }));
  const drawing = svg("svg", {
    viewBox: `0 0 ${width} 34`, role: "img", class: "ranking",
    "aria-label": `${name}: ${number(size)} examples from the least to the most likely; ${state}`,
  },
  svg("rect", { x: x(low), width: Math.max(x(high) - x(low), 2), y: 3, height: 28, class: "gap" }),
  svg("line", { x1: 4, x2: width - 4, y1: 17, y2: 17, class: "frame" }), ...ticks);
  return element("figure", {}, element("figcaption", {}, element("strong", { textContent: name }),
    element("span", { className: "hint", textContent: ` ${state}` })), drawing);
}

function people({ annotators }) {
  byId("people").replaceChildren(...annotators.map(({ name, n_answers: n, is_here: isHere }) => element("li", {},
    element("span", { className: isHere ? "dot here" : "dot", ariaHidden: "true" }),
    element("span", { textContent: `${name}${isHere ? "" : " (away)"}` }),
    element("span", { className: "value", textContent: number(n) }))));
}
