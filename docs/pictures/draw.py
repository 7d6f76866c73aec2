"""Draw the pictures of docs/concepts.md.  Run: python docs/pictures/draw.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np

GREY, ORANGE, BLUE, INK, FAINT, ASK = (
    "#9aa5b1",
    "#e8590c",
    "#1971c2",
    "#212529",
    "#dee2e6",
    "#7048e8",
)
FOLDER = Path(__file__).parent


class Picture:
    """Shapes of one picture, written as SVG."""

    def __init__(self, name: str, title: str, width: int, height: int) -> None:
        self.name, self.title, self.size = name, title, (width, height)
        self.shapes: list[str] = []

    def dot(self, x: float, y: float, fill: str = "none", line: str = GREY, r: float = 6) -> None:
        self.shapes.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{fill}" stroke="{line}" '
            f'stroke-width="1.5"/>'
        )

    def text(
        self, x: float, y: float, words: str, fill: str = INK, anchor: str = "start", size: int = 15
    ) -> None:
        self.shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}" '
            f'font-size="{size}">{words}</text>'
        )

    def box(
        self, x: float, y: float, w: float, h: float, fill: str = "#f8f9fa", line: str = GREY
    ) -> None:
        self.shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="6" fill="{fill}" '
            f'stroke="{line}" stroke-width="1.5"/>'
        )

    def line(self, path: str, colour: str = INK, dashed: bool = False, arrow: bool = True) -> None:
        self.shapes.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"'
            + (' stroke-dasharray="5 4"' if dashed else "")
            + (' marker-end="url(#tip)"' if arrow else "")
            + "/>"
        )

    def write(self) -> None:
        width, height = self.size
        tip = (
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="{INK}"/></marker>'
            "</defs>"
        )
        body = "\n".join(self.shapes)
        (FOLDER / f"{self.name}.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" '
            'font-family="Helvetica, Arial, sans-serif">\n'
            f"<title>{self.title}</title>\n{tip}\n"
            f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
        )


def draw_pool() -> None:
    picture = Picture("pool", "A pool: many examples, few of them labelled", 640, 210)
    labelled = {17: GREY, 60: GREY, 103: ORANGE, 141: GREY, 88: BLUE}
    for i in range(192):
        x, y = 24 + 25.7 * (i % 24), 24 + 20 * (i // 24)
        colour = labelled.get(i)
        picture.dot(x, y, colour or "none", colour or FAINT)
    for x, colour, words in (
        (24, FAINT, "not labelled"),
        (160, GREY, "majority class"),
        (310, ORANGE, "scratch"),
        (410, BLUE, "dent"),
    ):
        picture.dot(x, 192, "none" if colour == FAINT else colour, colour)
        picture.text(x + 14, 197, words)
    picture.write()


def draw_classes() -> None:
    picture = Picture("classes", "Two rare classes and the majority class", 640, 150)
    rows = (
        ("scratch", 60, ORANGE, "rare"),
        ("dent", 40, BLUE, "rare"),
        ("fine", 9_900, GREY, "majority"),
    )
    for i, (name, count, colour, kind) in enumerate(rows):
        y, width = 20 + 42 * i, max(count / 9_900 * 330, 3)
        picture.text(80, y + 19, name, anchor="end")
        picture.box(92, y, width, 28, colour, colour)
        picture.text(
            104 + width, y + 19, f"{count:,} examples: {kind}", colour if kind == "rare" else INK
        )
    picture.write()


def draw_strategy() -> None:
    picture = Picture(
        "strategy", "A strategy reads scores and labels and names one example", 640, 190
    )
    picture.box(16, 16, 240, 158)
    for x, words in ((32, "example"), (112, "p(scratch)"), (196, "label")):
        picture.text(x, 40, words, "#495057", size=13)
    rows = (
        ("a.jpg", "0.91", "scratch"),
        ("b.jpg", "0.48", "?"),
        ("c.jpg", "0.07", "fine"),
        ("d.jpg", "0.02", "?"),
    )
    for i, (name, score, label) in enumerate(rows):
        y = 68 + 28 * i
        picture.text(32, y, name)
        picture.text(130, y, score)
        picture.text(186, y, label, ORANGE if label == "scratch" else INK, size=14)
    picture.line("M262 95H298")
    picture.box(304, 66, 120, 58, "#f3f0ff", ASK)
    picture.text(364, 100, "strategy", ASK, "middle", 17)
    picture.line("M430 95H484")
    picture.text(492, 92, "Ask next:")
    picture.text(492, 114, "b.jpg", ASK, size=18)
    picture.write()


def draw_ranking() -> None:
    picture = Picture("ranking", "A ranking, the cut on it, and the next question", 640, 190)
    n, y = 25, 100
    known = {0: GREY, 5: GREY, 8: GREY, 14: ORANGE, 17: ORANGE, 24: ORANGE}
    xs = np.linspace(30, 610, n)
    picture.line(f"M30 {y}H610", FAINT, arrow=False)
    for i, x in enumerate(xs):
        picture.dot(x, y, known.get(i, "#fff"), known.get(i, GREY), 8)
    left, right = xs[8], xs[14]
    picture.line(f"M{left:.0f} 70V62H{right:.0f}V70", INK, arrow=False)
    picture.text((left + right) / 2, 54, "the cut is somewhere here", anchor="middle")
    middle = xs[11]
    picture.dot(middle, y, "none", ASK, 13)
    picture.line(f"M{middle:.0f} 148V118", ASK)
    picture.text(middle, 168, "so ask for the middle", ASK, "middle")
    picture.text(22, 134, "least likely a scratch", "#495057", size=14)
    picture.text(618, 134, "most likely a scratch", "#495057", "end", 14)
    picture.text(22, 78, "labelled fine", "#495057", size=14)
    picture.text(618, 78, "labelled scratch", ORANGE, "end", 14)
    picture.write()


def draw_round() -> None:
    picture = Picture("round", "A round: a batch of labels, then a training", 640, 170)
    steps = (
        ("ask", "one example"),
        ("tell", "its label"),
        ("train", "the classifier"),
        ("score", "the pool"),
    )
    for i, (name, what) in enumerate(steps):
        x = 22 + 158 * i
        own = (ASK, "#f3f0ff") if i < 2 else (INK, "#f8f9fa")
        picture.box(x, 62, 120, 56, own[1], own[0])
        picture.text(x + 60, 86, name, own[0], "middle", 17)
        picture.text(x + 60, 106, what, "#495057", "middle", 13)
        if i < 3:
            picture.line(f"M{x + 124} 90H{x + 152}")
    picture.line("M240 56C230 22 100 22 86 56", ASK)
    picture.text(163, 22, "50 times: one batch", ASK, "middle", 14)
    picture.line("M556 124C556 172 82 172 82 124")
    picture.text(319, 145, "the next round", INK, "middle", 14)
    picture.write()


def draw_session() -> None:
    picture = Picture(
        "session", "A snapshot is frozen; a session asks questions and takes answers", 640, 190
    )
    picture.box(16, 36, 150, 120)
    picture.text(91, 62, "snapshot", INK, "middle", 17)
    for i, words in enumerate(("scores of the pool", "labels known so far", "never changes")):
        picture.text(91, 90 + 23 * i, words, "#495057", "middle", 13)
    picture.line("M172 96H228")
    picture.text(200, 86, "start", INK, "middle", 13)
    picture.box(234, 36, 150, 120, "#f3f0ff", ASK)
    picture.text(309, 62, "session", ASK, "middle", 17)
    for i, words in enumerate(("asks one by one", "keeps the answers", "decides what is next")):
        picture.text(309, 90 + 23 * i, words, "#495057", "middle", 13)
    picture.box(500, 36, 124, 120)
    picture.text(562, 92, "you", INK, "middle", 17)
    picture.text(562, 114, "or your tool", "#495057", "middle", 13)
    picture.line("M390 76H492")
    picture.text(441, 66, "ask: 4711", ASK, "middle", 14)
    picture.line("M494 122H392")
    picture.text(443, 142, "tell: scratch", ORANGE, "middle", 14)
    picture.write()


if __name__ == "__main__":
    for draw in (draw_pool, draw_classes, draw_strategy, draw_ranking, draw_round, draw_session):
        draw()
