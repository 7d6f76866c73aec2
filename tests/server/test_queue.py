"""The state machine of the page, `static/queue.js`, driven event by event in a browser."""

import pytest

from support.projects import small_project
from support.servers import served

pytestmark = pytest.mark.browser

QUEUE = """async (script) => {
  const { Queue } = await import("/static/queue.js");
  const pending = [], log = [];
  const queue = new Queue({
    post: (path) => new Promise((resolve, reject) => pending.push({ path, resolve, reject })),
    show: (example) => log.push(`show ${example?.id}`),
    say: () => {}, report: () => log.push("report"), onState: () => {},
  });
  const tick = () => new Promise((resolve) => setTimeout(resolve));
  for (const [event, detail] of script) {
    if (event === "reply") pending.shift().resolve({ undone: null, ...detail });
    else if (event === "fail") pending.shift().reject(Object.assign(new Error(), detail));
    else if (event === "pause") await new Promise((resolve) => setTimeout(resolve, 600));
    else queue.on(event, detail);
    await tick();
  }
  return [queue.state, queue.shown?.id ?? null, pending.map(({ path }) => path.split("?")[0]), log];
}"""
A, B, C = ({"id": id} for id in "abc")
READY = [["begin"], ["reply", {"example": A, "ahead": {"dent": B, "": C}}]]
DENT = ["answer", {"name": "dent"}]


@pytest.fixture(scope="module")
def empty_page(browser, tmp_path_factory):
    """A page that has not signed in, to run modules in."""
    project, _ = small_project(tmp_path_factory.mktemp("queue"))
    with served(project) as running:
        page = browser.new_page()
        page.goto(running.address)
        yield page
        page.close()


@pytest.mark.parametrize(
    ("script", "state", "seen", "sent"),
    [
        ([["begin"]], "waiting", None, ["/api/next"]),
        ([["begin"], ["reply", {"example": None, "ahead": {}}]], "empty", None, []),
        ([*READY], "ready", "a", []),
        ([*READY, ["freed"]], "ready", "a", []),
        ([*READY, DENT], "waiting", "b", ["/api/label"]),
        ([*READY, ["answer", {"cannotTell": True}]], "waiting", "c", ["/api/skip"]),
        ([*READY, DENT, DENT], "keeping", "b", ["/api/label"]),
        ([*READY, DENT, DENT, ["undo"]], "waiting", "b", ["/api/label"]),
        ([*READY, DENT, ["undo"], DENT], "undoing", "b", ["/api/label"]),
        ([*READY, DENT, ["reply", {"example": B, "ahead": {}}]], "ready", "b", []),
        ([*READY, DENT, ["reply", {"example": C, "ahead": {}}]], "swapped", "c", []),
        (
            [*READY, DENT, ["reply", {"example": None, "ahead": {}, "problem": "no"}]],
            "empty",
            None,
            [],
        ),
        ([*READY, DENT, ["reply", {"example": C, "ahead": {}}], DENT], "swapped", "c", []),
        ([*READY, DENT, ["reply", {"example": C, "ahead": {}}], ["pause"]], "ready", "c", []),
        (
            [*READY, DENT, DENT, ["reply", {"example": B, "ahead": {}}]],
            "waiting",
            "b",
            ["/api/label"],
        ),
        ([*READY, DENT, DENT, ["reply", {"example": C, "ahead": {}}]], "swapped", "c", []),
        (
            [*READY, DENT, ["undo"], ["reply", {"example": B, "ahead": {}}]],
            "undoing",
            "b",
            ["/api/undo"],
        ),
        (
            [*READY, DENT, ["undo"], ["undo"], ["reply", {"example": B, "ahead": {}}]],
            "undoing",
            "b",
            ["/api/undo"],
        ),
        ([*READY, DENT, ["fail", {"status": 0}]], "swapped", "a", []),
        ([*READY, DENT, DENT, ["fail", {"status": 0}]], "swapped", "a", []),
        ([*READY, DENT, ["fail", {"status": 409}]], "waiting", "b", ["/api/next"]),
        ([*READY, ["undo"], DENT], "undoing", "a", ["/api/undo"]),
        ([*READY, ["undo"], DENT, ["reply", {"example": C, "ahead": {}}]], "ready", "c", []),
        ([*READY, ["undo"], ["reply", {"example": C, "ahead": {}}]], "ready", "c", []),
        ([*READY, ["undo"], ["fail", {"status": 0}]], "ready", "a", []),
    ],
)
def test_the_queue_of_the_page_follows_its_table(empty_page, script, state, seen, sent):
    assert empty_page.evaluate(QUEUE, script)[:3] == [state, seen, sent]
