"""What tests of the page need from a browser."""

from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

ARTIFACTS = Path(__file__).parents[2] / "artifacts"


def shown(page):
    """The example that the view Label shows."""
    return page.locator("#caption").inner_text()


def press_truth(page, server):
    """Label what is shown, rightly, and wait for another example."""
    example = shown(page)
    name = server.truth[example]
    page.keyboard.press(str(server.project.classes.index(name) + 1))
    expect(page.locator("#caption")).not_to_have_text(example)
    return example


def picture(page, name):
    """Keep a screenshot."""
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")


def violations(page):
    """What axe finds; it is put into the page by the browser, not by a tag."""
    found = Axe().run(page).response["violations"]
    return [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found]
