// Signing in, the views, keys, and what the server sends by itself.

import { get, post } from "./api.js";
import { prepare as prepareAudit } from "./audit.js";
import { GridView } from "./grid.js";
import { LabelView } from "./label.js";
import { draw } from "./panel.js";
import { ReviewView } from "./review.js";

const byId = (id) => document.getElementById(id);

const label = new LabelView(problem);
const grid = new GridView(problem);
const review = new ReviewView(problem);
let view = "label";

const shown = () => ({ label, review })[view] ?? grid;
const note = () => shown().note;

function problem(error) {
  if (error.status === 401) return get("/api/me").then(signIn);
  note().say(error.message, error.status === 0 ? "connection" : "");
}

function signIn({ needs_token: needsToken }) {
  byId("token-field").hidden = !needsToken;
  events?.close();
  byId("work").hidden = byId("views").hidden = byId("help-button").hidden = true;
  byId("sign-in").hidden = false;
  byId("name").focus();
}

byId("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("sign-in-problem").textContent = "";
  try {
    await post("/api/sign-in", { name: byId("name").value, token: byId("token").value });
    byId("sign-in").hidden = true;
    await begin();
  } catch (error) {
    byId("sign-in-problem").textContent = error.message;
  }
});

async function begin() {
  const me = await get("/api/me");
  if (me.name === null) return signIn(me);
  byId("me").textContent = me.name;
  const status = await get("/api/status");
  document.title = `${status.project} · galaxy-al`;
  byId("work").hidden = byId("views").hidden = byId("help-button").hidden = false;
  const isHere = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
  byId("join").textContent = `Your link for another ${isHere ? "browser" : "device"}: ${location.origin}${me.link}`;
  label.setClasses(status.classes);
  grid.setProject(status);
  review.setClasses(status.classes);
  update(status);
  listen();
  label.begin();
}

function update(status) {
  draw(status);
  byId("review-count").textContent = status.n_to_review ? ` ${status.n_to_review.toLocaleString()}` : "";
  if (view === "review") review.expect(status.n_to_review);
}

// The server knows by this connection that the page is open.
let events;

function listen() {
  events?.close();
  events = new EventSource("/api/events");
  events.onmessage = (event) => {
    update(JSON.parse(event.data));
    if (view === "label") label.beginAgain();
  };
  events.onerror = () => {
    note().say("Connection lost. Reconnecting…", "connection");
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  };
  events.onopen = () => {
    for (const each of [label, grid, review]) each.note.clear("connection");
    label.stayHere();
  };
}

setInterval(() => { if (!byId("work").hidden) label.stayHere(); }, 30_000);
addEventListener("pagehide", () => events?.close());
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

function go(to) {
  view = to;
  for (const button of byId("views").children) {
    if (button.dataset.view === to) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  for (const name of ["label", "grid", "find", "review"]) byId(`view-${name}`).hidden = name !== to;
  byId("tiles").hidden = to === "label" || to === "review";
  if (!byId("tiles").hidden) grid.show([]);
  if (to === "grid") grid.likeliest();
  else if (to === "find") grid.walk();
  else if (to === "review") review.begin();
  else label.begin();
}

for (const button of byId("views").children) {
  button.addEventListener("click", () => go(button.dataset.view));
}
byId("like-this").addEventListener("click", () => {
  const id = label.queue.shown?.id;
  if (!id) return;
  go("find");
  byId("walk-path").textContent = "";
  grid.like(id);
});
byId("sign-out").addEventListener("click", async () => {
  await post("/api/leave").catch(() => {});
  await post("/api/sign-out").catch(() => {});
  location.reload();
});
byId("train").addEventListener("click", () => post("/api/train").catch(problem));
prepareAudit(problem);
byId("help-button").addEventListener("click", () => byId("help").showModal());

const keys = byId("single-keys");
keys.checked = localStorage.getItem("single-keys") !== "off";
keys.addEventListener("change", () => localStorage.setItem("single-keys", keys.checked ? "on" : "off"));

const VIEW_KEYS = { l: "label", g: "grid", f: "find", r: "review" };

addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, select, textarea, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.repeat || byId("work").hidden) return;
  const key = event.key.toLowerCase();
  if (!byId("single-keys").checked && key !== "?") return;
  let isDone = true;
  if (key in VIEW_KEYS) go(VIEW_KEYS[key]);
  else if (key === "?") byId("help").showModal();
  else if (key === "u" && shown() === grid) {
    go("label"); // where you see what is undone
    label.undo();
  }
  else isDone = shown().key(event);
  if (isDone) event.preventDefault();
});

begin().catch(problem);
