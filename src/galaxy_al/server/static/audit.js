// The audit: random examples that say how many are left and how good the model is.

import { post } from "./api.js";
import { element } from "./show.js";

const byId = (id) => document.getElementById(id);
const number = (value) => Math.round(value).toLocaleString();
const percent = (value) => `${Math.round(value * 100)}%`;

export function prepare(onProblem) {
  const send = (labels) => post("/api/audit", { labels, mixed: byId("audit-mixed").checked }).catch(onProblem);
  byId("audit-form").addEventListener("submit", (event) => {
    event.preventDefault();
    send(byId("audit-labels").valueAsNumber);
  });
  byId("audit-stop").addEventListener("click", () => send(0));
}

export function draw({ advice, audit: { report }, counts }) {
  byId("advice").textContent = advice.sentence;
  const isAsking = Boolean(report) && !report.ended && report.n_answered < report.n_wanted;
  byId("audit-state").textContent = state(report, isAsking);
  byId("audit-form").hidden = isAsking;
  byId("audit-stop").hidden = !isAsking;
  byId("audit-classes").replaceChildren(...(report ? rows(report, counts) : []));
  byId("audit-notes").replaceChildren(...(report?.notes ?? []).map((text) =>
    element("p", { className: "hint", textContent: text })));
}

function state(report, isAsking) {
  if (!report) return "Label some random examples to know how many are left and how good the model is. They are asked like all others.";
  if (report.ended) return report.ended;
  const { n_answered: answered, n_wanted: wanted } = report;
  if (isAsking) return `Audit: ${number(answered)} of ${number(wanted)} random examples answered.`;
  return `By an audit with ${number(answered)} random examples. Each interval holds with 95% confidence; more examples make it narrower.`;
}

function rows({ classes, balanced_accuracy: accuracy, n_answered: answered }, counts) {
  if (!answered) return [];
  const rare = Object.entries(classes).slice(0, -1).map(([name, { left, found, precision, recall }]) =>
    element("li", {},
      element("strong", { textContent: name }),
      element("span", { textContent: `${number(counts[name] ?? 0)} found, about ${number(left.value)} left (${number(left.low)} to ${number(left.high)})` }),
      bar(found, `${percent(found.value)} are found (${percent(found.low)} to ${percent(found.high)})`),
      element("span", { className: "hint", textContent: decisions(precision, recall) })));
  return [...rare, element("li", {},
    element("strong", { textContent: "Balanced accuracy" }),
    bar(accuracy, `${percent(accuracy.value)} (${percent(accuracy.low)} to ${percent(accuracy.high)})`))];
}

function decisions(precision, recall) {
  const of = ({ value, low, high }) => `${percent(value)} (${percent(low)} to ${percent(high)})`;
  if (!precision) return "The model decides no example to be of this class.";
  return `The model’s decisions: precision ${of(precision)}, recall ${of(recall)}`;
}

// A share with its interval.
function bar({ value, low, high }, text) {
  const band = element("span", { className: "interval" });
  band.style.left = percent(low);
  band.style.width = `${Math.max((high - low) * 100, 1)}%`;
  const mark = element("span", { className: "mark" });
  mark.style.left = percent(value);
  return element("span", { className: "share" },
    element("span", { className: "track", ariaHidden: "true" }, band, mark),
    element("span", { className: "hint", textContent: text }));
}
