"""One word, one meaning: names that were replaced do not come back, and spelling is American."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "galaxy_al"
FILES = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.js"), *(ROOT / "benchmarks").glob("*.py")]
REPLACED = {
    "drawn", "standing", "shares", "Cell", "Contender", "Standing", "go_on", "heard_of", "foretell",
    "foretold", "judged_round", "_not_now", "_say", "_given_instead", "_embedded",
    "_leased", "_fitted", "_promised", "isSwapped", "isWaiting",
}  # fmt: skip
BRITISH = re.compile(r"labelled|neighbour|colour|centre", re.I)


def identifiers(path):
    text = path.read_text()
    if path.suffix == ".js":
        code = re.sub(r"//.*|([\"'`]).*?\1", "", text)
        return set(re.findall(r"[A-Za-z_]\w*", code))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


@pytest.mark.parametrize("path", sorted(FILES), ids=lambda path: str(path.relative_to(ROOT)))
def test_names_that_were_replaced_are_gone(path):
    found = identifiers(path)
    assert sorted(found & REPLACED) == []
    assert sorted(name for name in found if BRITISH.search(name)) == []
