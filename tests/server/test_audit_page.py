"""What the page says of how many are left: the advice, the forecast and the audit."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from galaxy_al.labelling.auditor import Plan
from galaxy_al.labelling.project import create_project
from support.pages import picture, press_truth, violations
from support.projects import blobs, small_project
from support.servers import served

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"
START, STOP = "Start", "Stop asking random examples"

pytestmark = pytest.mark.browser


@pytest.fixture
def server(tmp_path):
    project, truth = small_project(tmp_path)
    with served(project) as running:
        running.truth = truth
        yield running


def answer(page, server, count):
    for _ in range(count):
        press_truth(page, server)
    server.service.wait()


def start_audit(page, count):
    page.get_by_label("random examples").fill(str(count))
    page.get_by_role("button", name=START, exact=True).click()
    expect(page.locator("#audit-state")).to_contain_text(f"of {count} random examples answered")


def single_class_project(folder):
    """A project with one rare class, and the true classes by id."""
    embeddings, names = blobs()
    np.save(folder / "pool.npy", embeddings)
    project = create_project(
        folder / "project",
        folder / "pool.npy",
        kind="embeddings",
        classes=["dent"],
        other="fine",
        batch_size=20,
    )
    truth = ["dent" if name == "dent" else "fine" for name in names.tolist()]
    return project, dict(zip(project.pool.ids, truth))


def test_a_new_project_says_that_nothing_is_labelled(server, open_page):
    page = open_page(server, "Ann")
    expect(page.locator("#advice")).to_have_text("Nothing is labelled yet.")
    expect(page.locator("#found-chart")).to_have_text("Available after the first answer.")
    expect(page.locator("#found-chart svg")).to_have_count(0)


def test_the_advice_is_that_of_the_server_and_follows_each_answer(server, open_page):
    page = open_page(server, "Ann")
    answer(page, server, 1)
    expect(page.locator("#advice")).to_contain_text("1 label")
    answer(page, server, 40)
    clauses = server.service.advice().sentence.split("; ")
    said = ". ".join(clause[0].upper() + clause[1:] for clause in clauses)
    expect(page.locator("#advice")).to_have_text(said)
    expect(page.locator("#advice")).to_contain_text(re.compile(r"^\d+ found, "))


def test_a_forecast_continues_the_curve_once_there_are_five_finds(server, open_page):
    page = open_page(server, "Ann")
    chart = page.locator("#found-chart")
    answer(page, server, 4)
    expect(chart.locator(".curve.found")).to_have_count(1)
    expect(chart.locator(".curve.forecast")).to_have_count(0)
    answer(page, server, 46)
    n_found = sum(name != "fine" for name in server.service.view().labels.values())
    assert n_found >= 5
    expect(chart.locator(".curve.forecast")).to_have_count(1)
    expect(chart.locator("polygon.band")).to_have_count(1)
    dashes = "getComputedStyle(document.querySelector('.curve.forecast')).strokeDasharray"
    assert page.evaluate(dashes) != "none"
    expect(chart).to_contain_text(server.service.advice().outlook)
    last = chart.locator(".curve.found").get_attribute("points").split()[-1]
    first = chart.locator(".curve.forecast").get_attribute("points").split()[0]
    assert first == last


def test_the_forecast_does_not_flatten_the_curve_of_what_was_found(server, open_page):
    page = open_page(server, "Ann")
    answer(page, server, 50)
    chart = page.locator("#found-chart")
    expect(chart.locator("polygon.band")).to_have_count(1)
    heights = [
        float(point.split(",")[1])
        for name in ("found", "forecast")
        for point in chart.locator(f".curve.{name}").get_attribute("points").split()
    ]
    band = [float(y) for y in re.findall(r",([\d.]+)", band_points(chart))]
    assert min(band) >= 6  # inside of the frame, though the forecast is wider
    assert max(heights) - min(heights) >= 86 / 1.5 - 0.1


def band_points(chart):
    return chart.locator("polygon.band").get_attribute("points")


def test_the_accuracy_says_how_many_random_labels_are_missing(server, open_page):
    page = open_page(server, "Ann")
    answer(page, server, 40)
    text = re.compile(
        rf"Not enough random labels yet \(\d+ to \d+%\): about [\d,]+ more give {PLUS_MINUS}10\."
    )
    expect(page.locator("#quality-chart")).to_contain_text(text)
    expect(page.locator("#quality-chart svg")).to_have_count(1)
    expect(page.locator("#quality-chart .share")).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_an_audit_is_asked_like_all_else_and_says_how_many_are_left(server, open_page, width):
    page = open_page(server, "Ann", viewport={"width": width, "height": 800}, has_touch=True)
    answer(page, server, 40)
    expect(page.locator("#audit-state")).to_contain_text("Random examples tell how many are left")
    start_audit(page, 15)
    expect(page.locator("#audit-state")).to_have_text("Audit: 0 of 15 random examples answered.")
    expect(page.locator("#audit-form")).to_be_hidden()
    expect(page.get_by_role("button", name=STOP)).to_be_visible()
    answer(page, server, 18)
    expect(page.locator("#audit-state")).to_contain_text("By an audit with 15 random examples")
    expect(page.locator("#advice")).to_contain_text("by the audit")
    first = page.locator("#audit-classes li").first
    expect(first).to_contain_text("scratch")
    expect(first).to_contain_text("found, about")
    expect(first).to_contain_text(f"The model{APOSTROPHE}s decisions: precision")
    expect(page.locator("#audit-classes li")).to_have_count(2)
    picture(page, f"audit-{width}")
    assert violations(page) == []
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.get_by_label("mixed with other questions").check()
    page.get_by_role("button", name=START, exact=True).click()
    expect(page.locator("#audit-state")).to_contain_text("15 of 30")
    page.get_by_role("button", name=STOP).click()
    expect(page.locator("#audit-form")).to_be_visible()


def test_the_accuracy_is_that_of_the_audit_once_there_is_one(server, open_page):
    page = open_page(server, "Ann")
    answer(page, server, 40)
    start_audit(page, 10)
    answer(page, server, 12)
    chart = page.locator("#quality-chart")
    expect(chart).to_contain_text(server.service.advice().accuracy)
    expect(chart).to_contain_text(re.compile(r"audit of \d{4}-\d\d-\d\d"))
    truth = server.service.audit().balanced_accuracy
    mark = chart.locator(".share .mark").evaluate("node => node.style.left")
    assert abs(float(mark[:-1]) - 100 * truth.value) <= 0.51


def test_of_a_single_rare_class_the_audit_repeats_nothing(tmp_path, open_page):
    project, truth = single_class_project(tmp_path)
    with served(project) as server:
        server.truth = truth
        page = open_page(server, "Ann")
        answer(page, server, 30)
        start_audit(page, 10)
        answer(page, server, 12)
        row = page.locator("#audit-classes li")
        expect(row).to_have_count(1)
        expect(row).to_contain_text("are found")
        expect(row.locator("strong")).to_have_count(0)
        page.close()


def test_a_wanted_share_that_is_found_is_said_first(tmp_path, open_page):
    project, truth = small_project(tmp_path, target_recall=0.9)
    with served(project) as server:
        fine = [id for id in truth if truth[id] == "fine"]
        known = {id: name for id, name in truth.items() if id not in fine[:50]}
        server.service.label("Bob", known, "found")
        server.service.train()
        server.service.wait()
        server.service.start_audit(Plan(45))
        for _ in range(45):
            server.service.label("Bob", {server.service.next("Bob").id: "fine"})
        page = open_page(server, "Ann")
        holds = "By the audit, at least 90% of the rare examples are found: "
        expect(page.locator("#advice")).to_contain_text(holds)
        assert page.locator("#advice").text_content().startswith(holds)
        picture(page, "target")
        page.close()
