// The audit: random examples that say how many are left and how good the model is.

import { post } from "./api.js";
import { element } from "./show.js";

const byId = (id) => document.getElementById(id);
const number = (value) => Math.round(value).toLocaleString();
const percent = (value) => `${Math.round(value * 100)}%`;
const range = ({ low, high }, scale = 1) =>
  `${Math.floor(low * scale + 1e-9).toLocaleString()} to ${Math.ceil(high * scale - 1e-9).toLocaleString()}`;
const share = (interval) => `${percent(interval.value)} (${range(interval, 100)}%)`;

export function prepare(onProblem) {
  const send = (labels) => post("/api/audit", { labels, mixed: byId("audit-mixed").checked }).catch(onProblem);
  byId("audit-form").addEventListener("submit", (event) => {
    event.preventDefault();
    send(byId("audit-labels").valueAsNumber);
  });
  byId("audit-stop").addEventListener("click", () => send(0));
}

export function draw({ advice, audit: { report }, counts }) {
  showAdvice(advice.sentence);
  const isAsking = Boolean(report) && !report.ended && report.n_answered < report.n_wanted;
  byId("audit-state").textContent = state(report, isAsking);
  byId("audit-form").hidden = isAsking;
  byId("audit-stop").hidden = !isAsking;
  byId("audit-classes").replaceChildren(...(report ? rows(report, counts) : []));
  byId("audit-notes").replaceChildren(...(report?.notes ?? []).map((text) =>
    element("p", { className: "hint", textContent: text })));
}

// The first clause is what most want to know; the others are smaller.
function showAdvice(sentence) {
  const [first, ...others] = sentence.split("; ");
  const [lead, ...more] = [first, ...others.map((text) => text[0].toUpperCase() + text.slice(1))];
  byId("advice").replaceChildren(others.length ? `${lead}. ` : lead,
    element("span", { className: "hint more", textContent: more.join(". ") }));
}

function state(report, isAsking) {
  if (!report) return "Random examples tell how many are left and how good the model is.";
  if (report.ended) return report.ended;
  if (isAsking) return `Audit: ${number(report.n_answered)} of ${number(report.n_wanted)} random examples answered.`;
  return `By an audit with ${number(report.n_answered)} random examples, with 95% confidence.`;
}

// The advice has the numbers of a single rare class already.
function rows({ classes, n_answered: answered }, counts) {
  if (!answered) return [];
  const rare = Object.entries(classes).slice(0, -1);
  return rare.map(([name, { left, found, precision, recall }]) => {
    const line = `${number(counts[name] ?? 0)} found, about ${number(left.value)} left (${range(left)})`;
    const heading = rare.length === 1 ? [] : [
      element("strong", { textContent: name }), element("span", { textContent: line })];
    return element("li", {}, ...heading, bar(found, `${share(found)} are found`),
      element("span", { className: "hint", textContent: decisions(precision, recall) }));
  });
}

function decisions(precision, recall) {
  if (!precision) return "The model finds none of this class.";
  return `The model’s decisions: precision ${share(precision)}, recall ${share(recall)}`;
}

// A share with its interval.
export function bar({ value, low, high }, text) {
  const band = element("span", { className: "interval" });
  band.style.left = percent(low);
  band.style.width = `${Math.max((high - low) * 100, 1)}%`;
  const mark = element("span", { className: "mark" });
  mark.style.left = percent(value);
  return element("span", { className: "share" },
    element("span", { className: "track", ariaHidden: "true" }, band, mark),
    element("span", { className: "hint", textContent: text }));
}
