"""The view Review in a real browser."""

import numpy as np
import pytest
from playwright.sync_api import expect

from galaxy_al.labelling.project import create_project
from support.pages import picture, shown, violations
from support.projects import small_project
from support.servers import served

CANNOT_TELL = "Can\N{RIGHT SINGLE QUOTATION MARK}t tell"

pytestmark = pytest.mark.browser


@pytest.fixture
def server(tmp_path):
    """A project with wrong labels by Ann, and an example that Bob calls otherwise."""
    project, truth = small_project(tmp_path, batch_size=200)
    with served(project) as running:
        service = running.service
        labels = dict([*truth.items()][:150])
        fine = [id for id in labels if truth[id] == "fine"]
        service.label("Ann", {**labels, **dict.fromkeys(fine[:3], "dent")}, "found")
        running.disputed = next(id for id in labels if truth[id] == "scratch")
        service.label("Bob", {running.disputed: "dent"}, "found")
        service.train()
        service.wait()
        suspected = [item.examples[0].id for item in service.review() if item.suggested == "fine"]
        running.wrong = [id for id in suspected if id in fine[:3]]
        yield running


def counted(page):
    return int(page.locator("#review-count").inner_text() or 0)


def go_to(page, id):
    """Go on until an example is shown."""
    caption = page.locator("#review-caption")
    for _ in range(20):
        if caption.inner_text() == id:
            return
        page.keyboard.press("n")
    expect(caption).to_have_text(id)


def review(page):
    page.keyboard.press("r")
    expect(page.locator("#review-why")).not_to_be_empty()


def test_a_suspected_error_is_corrected_by_its_key_and_undone(server, open_page):
    page = open_page(server, "Eve")
    n_items = len(server.service.review())
    expect(page.get_by_role("button", name=f"Review {n_items}")).to_be_visible()
    review(page)
    wrong = server.wrong[0]
    go_to(page, wrong)
    expect(page.locator("#review-why")).to_contain_text("Labelled dent, but the model thinks fine")
    expect(page.locator("#review-said")).to_have_text("Ann: dent")
    button = page.locator("#review-classes button")
    expect(button.nth(1)).to_contain_text("now")
    expect(button.nth(2)).to_contain_text("model")
    picture(page, "review-suspect")
    page.keyboard.press("3")
    expect(page.locator("#review-note")).to_have_text(f"{wrong} is fine.")
    expect(page.locator("#review-count")).to_have_text(f" {n_items - 1}")
    assert server.service.view().labels[wrong] == "fine"
    last = server.service._log.last_of("Eve")
    assert (last.example, last.source) == (wrong, "review")
    page.keyboard.press("u")
    expect(page.locator("#review-note")).to_have_text("Undone.")
    expect(page.locator("#review-caption")).to_have_text(wrong)
    expect(page.locator("#review-count")).to_have_text(f" {n_items}")
    assert server.service.view().labels[wrong] == "dent"
    page.keyboard.press("u")
    expect(page.locator("#review-note")).to_have_text("There is nothing to undo here.")


def test_a_kept_label_leaves_the_review(server, open_page):
    page = open_page(server, "Eve")
    review(page)
    wrong = server.wrong[1]
    go_to(page, wrong)
    page.get_by_role("button", name="Keep the label").click()
    expect(page.locator("#review-note")).to_have_text("Kept.")
    expect(page.locator("#review-caption")).not_to_have_text(wrong)
    shown_again = [one.id for item in server.service.review() for one in item.examples]
    assert wrong not in shown_again
    assert server.service.view().labels[wrong] == "dent"


def test_a_disagreement_shows_everybodys_answer_and_is_decided(server, open_page):
    page = open_page(server, "Eve")
    review(page)
    go_to(page, server.disputed)
    expect(page.locator("#review-why")).to_have_text("Ann says scratch, Bob says dent.")
    expect(page.locator("#review-said")).to_have_text("Ann: scratch · Bob: dent")
    page.get_by_role("button", name="scratch").last.click()
    expect(page.locator("#review-note")).to_have_text(f"{server.disputed} is scratch.")
    assert "disagreement" not in {item.reason for item in server.service.review()}


def test_what_cannot_be_told_leaves_the_review(server, open_page):
    page = open_page(server, "Eve")
    review(page)
    go_to(page, server.wrong[0])
    page.locator("#review-cannot-tell").click()
    expect(page.locator("#review-note")).to_have_text(f"{CANNOT_TELL}.")
    assert server.wrong[0] not in server.service.view().labels


def test_when_all_is_decided_the_page_says_so_and_the_count_goes(server, open_page):
    page = open_page(server, "Eve")
    review(page)
    while counted(page):
        left = counted(page)
        page.keyboard.press("k")
        expect(page.locator("#review-count")).not_to_have_text(f" {left}")
    expect(page.locator("#review-nothing")).to_be_visible()
    assert server.service.review() == []


def test_the_views_label_and_grid_never_show_an_answer_or_a_suspicion(server, open_page):
    page = open_page(server, "Bob")
    assert shown(page)
    for key in ("l", "g", "f"):
        page.keyboard.press(key)
        page.wait_for_timeout(300)
        text = page.locator("main:visible").inner_text()
        assert "the model thinks" not in text
        assert "Ann:" not in text


def test_another_persons_decision_does_not_change_what_is_on_the_screen(server, open_page):
    page = open_page(server, "Eve")
    review(page)
    go_to(page, server.wrong[0])
    before = counted(page)
    server.service.label("Bob", {server.wrong[0]: "fine"}, "review")
    expect(page.locator("#review-count")).to_have_text(f" {before - 1}")
    page.wait_for_timeout(300)
    expect(page.locator("#review-caption")).to_have_text(server.wrong[0])


def test_a_failure_is_told_and_nothing_is_lost(server, open_page):
    page = open_page(server, "Eve", may_complain=True)
    review(page)
    go_to(page, server.wrong[0])
    page.route("**/api/label*", lambda route: route.abort())
    page.keyboard.press("3")
    expect(page.locator("#review-note")).to_have_text("The server cannot be reached.")
    expect(page.locator("#review-caption")).to_have_text(server.wrong[0])
    page.unroute("**/api/label*")
    page.keyboard.press("3")
    expect(page.locator("#review-note")).to_have_text(f"{server.wrong[0]} is fine.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_duplicates_are_side_by_side_and_accessible(tmp_path, open_page, scheme, width):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 40)).astype(np.float32)
    vectors[50] = vectors[3]
    np.save(tmp_path / "pool.npy", vectors)
    rows = [f"{i},{'dent' if i < 10 else 'fine'}" for i in range(55)]
    (tmp_path / "known.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    project = create_project(
        tmp_path / "project",
        tmp_path / "pool.npy",
        kind="embeddings",
        classes=["dent"],
        other="fine",
        labels=tmp_path / "known.csv",
    )
    with served(project) as server:
        viewport = {"width": width, "height": 800}
        page = open_page(server, "Ann", color_scheme=scheme, viewport=viewport)
        server.service.review()
        server.service.wait()
        review(page)
        copies = page.locator("#review-group .copy")
        expect(copies).to_have_count(2)
        expect(page.locator("#review-why")).to_have_text(
            "These embeddings are the same, but their labels differ."
        )
        expect(copies.nth(0)).to_contain_text("import: dent")
        picture(page, f"review-duplicates-{scheme}-{width}")
        assert violations(page) == []
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        page.keyboard.press("1")
        expect(page.locator("#review-note")).to_have_text("All 2 are dent.")
        labels = server.service.view().labels
        assert (labels["3"], labels["50"]) == ("dent", "dent")
        page.keyboard.press("u")
        expect(copies).to_have_count(2)
        labels = server.service.view().labels
        assert (labels["3"], labels["50"]) == ("dent", "fine")
        page.close()
