"""Show the diagrams of the pages as pictures, without a script from elsewhere.

A page holds a diagram as a ``mermaid`` block; its picture is in ``docs/diagrams``. Draw the
pictures again after a change (needs Chromium, and mermaid from npm):

    npm install --prefix /tmp/mermaid mermaid
    python docs/hooks/diagrams.py /tmp/mermaid/node_modules/mermaid/dist/mermaid.min.js
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
PICTURES = DOCS / "diagrams"
BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", flags=re.M | re.S)
_LOOK = {
    "theme": "base",
    "themeVariables": {
        "actorBkg": "#f8f9fa",
        "actorBorder": "#9aa5b1",
        "noteBkgColor": "#f3f0ff",
        "noteBorderColor": "#7048e8",
        "signalColor": "#212529",
        "textColor": "#212529",
    },
    "fontFamily": "Helvetica, Arial, sans-serif",
    "wrap": True,
    "sequence": {
        "actorFontSize": 13,
        "actorMargin": 12,
        "boxMargin": 6,
        "diagramMarginX": 8,
        "height": 44,
        "messageAlign": "left",
        "messageMargin": 26,
        "mirrorActors": False,
        "noteAlign": "left",
        "width": 116,
        "wrapPadding": 6,
    },
}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Put the pictures where a page has diagrams; mkdocs calls this for every page."""
    name = Path(page.file.src_uri).stem
    numbers = iter(range(1, 100))

    def shown(block: re.Match[str]) -> str:
        path = picture_of(name, next(numbers))
        if not is_current(path, block[1]):
            raise ValueError(
                f"{path} is not the picture of its diagram: see docs/hooks/diagrams.py."
            )
        title = re.search(r"accTitle: (.+)", block[1])
        return f"![{title[1] if title else name}](diagrams/{path.name})"

    return BLOCK.sub(shown, markdown)


def picture_of(page: str, number: int) -> Path:
    """Where the picture of a page's diagram is."""
    return PICTURES / f"{page}-{number}.svg"


def is_current(picture: Path, diagram: str) -> bool:
    """Whether a picture shows this diagram and not an older one."""
    return picture.exists() and picture.read_text().startswith(_mark(diagram))


def _mark(diagram: str) -> str:
    return f"<!-- sha256 {hashlib.sha256(diagram.encode()).hexdigest()} -->\n"


def _sized(svg: str) -> str:
    """With a width in pixels: as a picture, 100% would mean that of the page."""
    width = re.search(r'viewBox="\S+ \S+ (\S+)', svg)
    assert width is not None
    return svg.replace('width="100%"', f'width="{width[1]}"', 1)


def draw_all(mermaid: Path) -> None:
    """Draw the pictures of all pages."""
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page()
        tab.set_content("<body></body>")
        tab.add_script_tag(path=str(mermaid))
        tab.evaluate(f"mermaid.initialize({json.dumps({'startOnLoad': False, **_LOOK})})")
        for page in sorted(DOCS.glob("*.md")):
            for number, diagram in enumerate(BLOCK.findall(page.read_text()), start=1):
                draw = "([id, text]) => mermaid.render(id, text).then(made => made.svg)"
                picture = picture_of(page.stem, number)
                picture.write_text(
                    _mark(diagram) + _sized(tab.evaluate(draw, [picture.stem, diagram]))
                )
                print(picture)
        browser.close()


if __name__ == "__main__":
    draw_all(Path(sys.argv[1]))
