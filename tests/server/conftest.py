import os
import shutil

import numpy as np
import pytest
from PIL import Image

from galaxy_al.labelling.project import create_project
from support.projects import small_project
from support.servers import served


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    project, truth = small_project(tmp_path_factory.mktemp("server"))
    with served(project) as running:
        running.truth = truth
        yield running


@pytest.fixture
def ann(server):
    return server.browser("ann")


@pytest.fixture(scope="session")
def image_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir()
    for i in range(24):
        color = (200, 30, 30) if i % 6 == 0 else (30, 30, 200)
        noise = rng.integers(0, 40, (48, 64, 3)) + np.array(color)
        suffix = "tif" if i == 1 else "png"
        picture = Image.fromarray(np.clip(noise, 0, 255).astype(np.uint8))
        picture.save(folder / "photos" / f"a <b>&'\"{i:02}.{suffix}")
    (folder / "photos" / "broken.jpg").write_bytes(b"no image")
    project = create_project(
        folder / "project",
        folder / "photos",
        kind="images",
        classes=["red"],
        other="blue",
        batch_size=5,
    )
    with served(project) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        try:
            started = playwright.chromium.launch(
                executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
                args=flags,
            )
        except Error as error:
            reason = str(error).splitlines()[0]
            pytest.skip(f"Chromium cannot be started, so the page is not tested: {reason}")
        yield started
        started.close()


@pytest.fixture
def open_page(browser):
    """Opens pages; at the end none of them may have complained."""
    from playwright.sync_api import expect

    expect.set_options(timeout=20_000)
    problems, contexts = [], []

    def opened(server, name=None, may_complain=False, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        if not may_complain:
            page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog {dialog.message}"))
        page.goto(server.address)
        if name is not None:
            page.get_by_label("Name").fill(name)
            page.get_by_role("button", name="Start labelling").click()
            expect(page.locator("#caption")).not_to_be_empty()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []
