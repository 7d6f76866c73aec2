"""The labelling page in a real browser."""

import numpy as np
import pytest
from playwright.sync_api import expect

from galaxy_al.labelling.project import create_project
from support.pages import picture, press_truth, shown, violations
from support.projects import sharded_project, small_project
from support.servers import served

CANNOT_TELL = "Can\N{RIGHT SINGLE QUOTATION MARK}t tell"
HOSTILE = "<img src=x onerror=alert(1)>"


pytestmark = pytest.mark.browser


@pytest.fixture
def server(tmp_path):
    project, truth = small_project(tmp_path)
    with served(project) as running:
        running.truth = truth
        yield running


def answered_on_a_held_line(page):
    """Answer, and let the request wait: those that wait, and the example; the next one is shown."""
    waiting = []
    page.route("**/api/label*", lambda route: waiting.append(route))
    first = shown(page)
    page.keyboard.press("3")
    expect(page.locator("#caption")).not_to_have_text(first)
    return waiting, first


def labels(server):
    return dict(server.service.view().labels)


def test_labelling_by_keys_with_training_in_between(server, open_page):
    page = open_page(server, "Ann")
    said = {}
    for _ in range(50):
        example = press_truth(page, server)
        said[example] = server.truth[example]
    expect(page.locator("#counts")).to_contain_text("50 of 200")
    server.service.wait()
    assert labels(server) == said
    assert server.service.round >= 2
    expect(page.locator("#model-state")).to_contain_text(f"Round {server.service.round}")
    expect(page.locator("#asking")).to_have_text(
        "Goal: a classifier for the rare classes. Asked by fair-cuts."
    )
    expect(page.locator("#rankings svg")).to_have_count(2)
    expect(page.locator("#quality-chart .band")).to_have_count(1)
    expect(page.locator("#quality-chart")).to_contain_text("random labels")
    picture(page, "label")


def test_a_pool_in_shards_is_labelled_as_any_other(tmp_path, open_page):
    pytest.importorskip("distributed")
    project, truth = sharded_project(tmp_path)
    with served(project) as server:
        server.truth = truth
        page = open_page(server, "Ann")
        said = {}
        for _ in range(30):
            example = press_truth(page, server)
            said[example] = truth[example]
        server.service.wait()
        assert labels(server) == said
        assert server.service.round >= 1
        page.keyboard.press("g")
        expect(page.locator("#grid .tile")).to_have_count(24)
        page.keyboard.press("l")
        example = shown(page)
        page.keyboard.press("k")
        expect(page.locator("#tile-note")).to_contain_text(f"Like {example}")
        picture(page, "shards")
    project.close()


def test_a_head_whose_accuracy_is_not_estimated_says_so(tmp_path, open_page):
    project, truth = small_project(tmp_path, head="linear")
    with served(project) as server:
        page = open_page(server, "Ann")
        wait = "Available after the first training with two classes."
        expect(page.locator("#quality-chart")).to_have_text(wait)
        names = [next(id for id in truth if truth[id] == name) for name in ("dent", "fine")]
        server.service.label("Bob", {id: truth[id] for id in names}, "found")
        server.service.train()
        expect(page.locator("#quality-chart")).to_have_text(
            "Accuracy is not estimated for this head."
        )


def test_a_sound_is_shown_with_controls(server, open_page):
    page = open_page(server)
    shown = (
        "import('/static/show.js').then(({content}) => content({id: '1', audio: '#'}).outerHTML)"
    )
    assert page.evaluate(shown) == '<audio controls="" src="#" aria-label="Example 1"></audio>'


def test_undo_skip_and_cannot_tell(server, open_page):
    page = open_page(server, "Ann")
    asked = [press_truth(page, server) for _ in range(3)]
    last = f"{asked[-1]} is {server.truth[asked[-1]]}"
    expect(page.locator("#note")).to_have_text(f"Last answer: {last}.")
    for example in reversed(asked):
        page.keyboard.press("u")
        expect(page.locator("#caption")).to_have_text(example)
    page.keyboard.press("u")
    expect(page.locator("#note")).to_have_text("There is nothing to undo.")
    assert labels(server) == {}
    skipped = shown(page)
    page.keyboard.press("s")
    expect(page.locator("#caption")).not_to_have_text(skipped)
    expect(page.locator("#note")).to_have_text(f"Skipped {skipped}.")
    never = shown(page)
    page.get_by_role("button", name=CANNOT_TELL).click()
    expect(page.locator("#caption")).not_to_have_text(never)
    expect(page.locator("#note")).to_have_text(f"Last answer: {CANNOT_TELL.lower()} {never}.")
    expect(page.locator("#counts")).to_contain_text(f"1 {CANNOT_TELL.lower()}")
    kinds = {entry.example: entry.kind for entry in server.service.view().entries}
    assert kinds == {skipped: "skip", never: "cannot tell"}


def test_on_a_slow_line_the_next_example_is_there_at_once(server, open_page):
    page = open_page(server, "Ann")
    press_truth(page, server)
    waiting, first = answered_on_a_held_line(page)
    second = shown(page)
    assert first not in labels(server)  # the server does not know it yet
    page.keyboard.press("2")  # an answer to what is shown already is kept
    page.keyboard.press("u")  # and can be undone
    expect(page.locator("#note")).to_have_text(f"{second}: undone.")
    page.keyboard.press("3")
    page.wait_for_timeout(100)
    assert len(waiting) == 1
    waiting[0].continue_()
    page.wait_for_timeout(500)
    assert len(waiting) == 2
    waiting[1].continue_()
    expect(page.locator("#counts")).to_contain_text("3 of 200")
    assert labels(server)[second] == "fine"
    assert first in labels(server)


def test_an_answer_is_never_given_to_another_example_than_the_one_seen(server, open_page):
    page = open_page(server, "Ann")
    press_truth(page, server)
    waiting, _ = answered_on_a_held_line(page)
    announced = shown(page)
    server.browser("Bob")(
        "POST", "/api/label", json={"labels": {announced: "dent"}, "source": "found"}
    )
    page.keyboard.press("3")  # to what Bob has labelled: the page does not know
    waiting[0].continue_()
    expect(page.locator("#note")).to_contain_text("went to another annotator")
    expect(page.locator("#caption")).not_to_have_text(announced)
    third = shown(page)
    page.keyboard.press("1")  # too soon to be an answer to this one
    page.wait_for_timeout(700)
    assert len(waiting) == 1
    page.keyboard.press("1")
    page.wait_for_timeout(300)
    waiting[1].continue_()
    expect(page.locator("#caption")).not_to_have_text(third)
    expect(page.locator("#counts")).to_contain_text("4 of 200")
    assert labels(server)[announced] == "dent"
    assert labels(server)[third] == "scratch"


def test_after_a_failure_no_answer_goes_to_what_comes_back(server, open_page):
    page = open_page(server, "Ann", may_complain=True)
    press_truth(page, server)
    waiting, first = answered_on_a_held_line(page)
    waiting[0].abort()
    expect(page.locator("#caption")).to_have_text(first)  # it did not count
    page.keyboard.press("1")  # meant for what was there a moment ago
    page.wait_for_timeout(700)
    assert len(waiting) == 1
    page.unroute("**/api/label*")
    page.keyboard.press("3")
    expect(page.locator("#counts")).to_contain_text("2 of 200")
    assert labels(server)[first] == "fine"


def test_a_bug_of_the_server_is_shown_with_its_id(server, open_page, monkeypatch, caplog):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("a bug")

    page = open_page(server, "Ann", may_complain=True)
    first = shown(page)
    with monkeypatch.context() as patched:
        patched.setattr(server.service, "label", broken)
        page.keyboard.press("3")
        expect(page.locator("#note")).to_contain_text("Internal error")
    (record,) = [one for one in caplog.records if one.exc_info]
    assert record.args[0] in page.locator("#note").inner_text()
    expect(page.locator("#caption")).to_have_text(first)  # it was not labelled
    page.wait_for_timeout(600)
    page.keyboard.press("3")
    expect(page.locator("#counts")).to_contain_text("1 of 200")


def test_undos_on_a_slow_line_are_counted(server, open_page):
    page = open_page(server, "Ann")
    asked = [press_truth(page, server) for _ in range(3)]
    expect(page.locator("#counts")).to_contain_text("3 of 200")
    waiting = []
    page.route("**/api/*ahead=true", lambda route: waiting.append(route))
    page.route("**/api/undo*", lambda route: route.continue_())
    fourth = shown(page)
    page.keyboard.press("3")
    page.keyboard.press("u")
    expect(page.locator("#note")).to_have_text("Undo: waiting for the server.")
    page.keyboard.press("u")
    page.keyboard.press("1")
    expect(page.locator("#note")).to_have_text("Wait until the undo is done.")
    waiting[0].continue_()
    expect(page.locator("#caption")).to_have_text(asked[-1])
    assert labels(server).keys() == set(asked[:-1])
    assert fourth not in labels(server)


def test_what_is_free_again_is_asked_again(tmp_path, open_page):
    project, _ = small_project(tmp_path, size=50)
    with served(project) as running:
        page = open_page(running, "Ann")
        others = dict.fromkeys(set(project.pool.ids) - {shown(page)}, "fine")
        bob = running.browser("Bob")
        bob("POST", "/api/label", json={"labels": others, "source": "found"})
        page.keyboard.press("3")
        expect(page.locator("#stage")).to_contain_text("Nothing is left to ask.")
        bob("POST", "/api/undo")
        bob("POST", "/api/leave")
        expect(page.locator("#caption")).not_to_be_empty()


def test_keys_do_not_care_about_shift(server, open_page):
    page = open_page(server, "Ann")
    first = shown(page)
    page.keyboard.press("Shift+S")
    expect(page.locator("#caption")).not_to_have_text(first)
    second = shown(page)
    zoom = "{key: '+', code: 'Digit1', bubbles: true}"  # as on a Swiss keyboard: no answer
    page.evaluate(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {zoom}))")
    page.keyboard.press("Shift+Digit3")
    expect(page.locator("#caption")).not_to_have_text(second)
    expect(page.locator("#counts")).to_contain_text("1 of 200")
    assert labels(server) == {second: "fine"}


def test_the_grid_labels_many_at_once(server, open_page):
    page = open_page(server, "Ann")
    for _ in range(25):
        press_truth(page, server)
    expect(page.locator("#counts")).to_contain_text("25 of 200")
    server.service.wait()
    page.keyboard.press("g")
    tiles = page.locator("#grid .tile")
    expect(tiles).to_have_count(24)
    page.get_by_role("combobox", name="Most likely").select_option("dent")
    expect(page.locator("#tile-note")).to_contain_text("Most likely dent")
    tiles.nth(0).click()
    tiles.nth(1).focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(page.locator("#tile-note")).to_have_text("3 selected.")
    picture(page, "grid")
    page.keyboard.press("2")
    expect(tiles).to_have_count(21)
    expect(page.locator("#counts")).to_contain_text("28 of 200")
    last = max(server.service.view().entries, key=lambda entry: entry.number).example
    page.keyboard.press("u")
    expect(page.locator("#caption")).to_have_text(last)
    expect(page.locator("#counts")).to_contain_text("27 of 200")


def test_tiles_say_nothing_of_classes_before_there_is_a_model(server, open_page):
    page = open_page(server, "Ann")
    page.keyboard.press("g")
    expect(page.locator("#grid .tile")).to_have_count(24)
    assert "%" not in page.locator("#tiles").inner_text()


def test_two_browsers_are_two_annotators(server, open_page):
    ann, bob = open_page(server, "Ann"), open_page(server, "Bob")
    for _ in range(15):
        assert shown(ann) != shown(bob)
        press_truth(ann, server)
        press_truth(bob, server)
    for page in (ann, bob):
        expect(page.locator("#people")).to_contain_text("Ann15")
        expect(page.locator("#people")).to_contain_text("Bob15")
    who = {entry.annotator for entry in server.service.view().entries}
    assert who == {"Ann", "Bob"}
    held = shown(ann)
    ann.close()
    expect(bob.locator("#people")).to_contain_text("Ann (away)")
    assert held not in server.service.view().pending


def test_a_token_is_asked_for_at_once(tmp_path, open_page):
    project, _ = small_project(tmp_path)
    with served(project, token="open sesame") as running:
        page = open_page(running, may_complain=True)
        page.get_by_label("Name").fill("Ann")
        page.get_by_label("Token").fill("open")
        page.get_by_role("button", name="Start labelling").click()
        expect(page.locator("#sign-in-problem")).to_contain_text("That is not the token")
        page.get_by_label("Token").fill("open sesame")
        page.get_by_role("button", name="Start labelling").click()
        expect(page.locator("#caption")).not_to_be_empty()
        page.keyboard.press("?")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Name")).to_be_visible()


def test_the_page_goes_on_after_the_server_was_away(tmp_path, open_page):
    project, truth = small_project(tmp_path)
    with served(project) as first:
        first.truth = truth
        page = open_page(first, "Ann", may_complain=True)
        press_truth(page, first)
        expect(page.locator("#counts")).to_contain_text("1 of 200")
        port = first.port
    example = shown(page)
    page.keyboard.press("1")
    expect(page.locator("#note")).to_have_text("The server cannot be reached.")
    assert shown(page) == example  # it was not labelled
    with served(project, port=port) as second:
        second.truth = truth
        page.reload()
        expect(page.locator("#me")).to_have_text("Ann")
        expect(page.locator("#caption")).not_to_be_empty()
        press_truth(page, second)
        expect(page.locator("#counts")).to_contain_text("2 of 200")
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_view_is_accessible(server, open_page, scheme, width):
    page = open_page(
        server, color_scheme=scheme, viewport={"width": width, "height": 800}, has_touch=True
    )
    expect(page.get_by_label("Name")).to_be_focused()
    found = [("sign in", violations(page))]
    page.keyboard.type("Ann")
    page.keyboard.press("Enter")
    expect(page.locator("#caption")).not_to_be_empty()
    for _ in range(25):
        press_truth(page, server)
    server.service.wait()
    for key, view in (("l", "label"), ("g", "grid"), ("f", "find"), ("r", "review")):
        page.keyboard.press(key)
        page.wait_for_timeout(800)
        picture(page, f"{view}-{scheme}-{width}")
        found.append((view, violations(page)))
        wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert not wide, f"{view} scrolls sideways"
    page.keyboard.press("?")
    found.append(("help", violations(page)))
    page.keyboard.press("Escape")
    page.goto(server.address + "/api")
    expect(page.locator("article").first).to_be_visible()
    found.append(("api", violations(page)))
    assert [entry for entry in found if entry[1]] == []
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    brightness = sum(int(part) for part in ground[4:-1].split(",")) / 3
    assert (brightness < 60) == (scheme == "dark")


@pytest.mark.torch
def test_names_and_texts_are_only_text(tmp_path, open_page):
    texts = [f"{HOSTILE} mail {i} " + ("win a prize " * 9 if i % 8 == 0 else "") for i in range(40)]
    rows = ["id,text", *(f'"{HOSTILE}{i}","{text}"' for i, text in enumerate(texts))]
    (tmp_path / "mails.csv").write_text("\n".join(rows) + "\n")
    project = create_project(
        tmp_path / "project",
        tmp_path / "mails.csv",
        kind="texts",
        classes=[HOSTILE],
        other="<b>ham</b>",
        batch_size=5,
    )
    with served(project) as running:
        page = open_page(running, HOSTILE)
        expect(page.locator("#stage .text")).to_contain_text(HOSTILE)
        expect(page.get_by_role("button", name=HOSTILE)).to_be_visible()
        for _ in range(6):
            example = shown(page)
            is_spam = "prize" in page.locator("#stage .text").inner_text()
            page.keyboard.press("1" if is_spam else "2")
            expect(page.locator("#caption")).not_to_have_text(example)
        expect(page.locator("#people")).to_contain_text(HOSTILE)
        page.keyboard.press("f")
        page.get_by_label("Like this text").fill("win a prize")
        page.get_by_role("button", name="Find", exact=True).last.click()
        expect(page.locator("#grid .tile").first).to_contain_text("prize")
        picture(page, "find-text")
        assert page.locator("img").count() == 0
        page.close()


@pytest.mark.torch
def test_an_image_is_large_and_can_be_zoomed(tmp_path, open_page):
    from PIL import Image

    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for i in range(20):
        noise = rng.integers(0, 255, (60, 90, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "photos" / f"photo {i}.jpg")
    project = create_project(
        tmp_path / "project", tmp_path / "photos", kind="images", classes=["odd"], other="even"
    )
    with served(project) as running:
        page = open_page(running, "Ann")
        image = page.locator("#stage img")
        expect(image).to_have_js_property("naturalWidth", 90)
        box = image.bounding_box()
        assert min(box["width"], box["height"]) > 300
        page.keyboard.press("+")
        assert image.bounding_box()["width"] > 1.4 * box["width"]
        page.keyboard.press("-")
        image.click()
        assert image.bounding_box()["width"] > 2 * box["width"]
        page.mouse.wheel(0, 500)
        page.keyboard.press("k")
        expect(page.locator("#grid img").first).to_have_js_property("complete", True)
        expect(page.locator("#tile-note")).to_contain_text("Like photo")
        page.close()


def test_on_a_phone_everything_is_at_hand(server, open_page):
    page = open_page(server, "Ann", viewport={"width": 390, "height": 844}, has_touch=True)
    for name in ("scratch", "dent", "fine", "Undo", "Skip", CANNOT_TELL):
        button = page.get_by_role("button", name=name, exact=False).first
        box = button.bounding_box()
        assert box["y"] + box["height"] <= 844, name
        assert box["height"] >= 44, name
    before = shown(page)
    page.get_by_role("button", name="fine").tap()
    expect(page.locator("#caption")).not_to_have_text(before)
    picture(page, "phone")
