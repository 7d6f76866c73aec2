"""Let pages link to files of the repository: such a link becomes the file's name on the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)]+)\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Replace links that leave the folder of pages by their text; mkdocs calls this."""
    folder = (Path(config.docs_dir) / page.file.src_uri).parent

    def replaced(link: re.Match[str]) -> str:
        target = (folder / link[2].partition("#")[0]).resolve()
        is_page = target.is_relative_to(config.docs_dir)
        return link[0] if is_page else link[1]

    return _LINK.sub(replaced, markdown)
