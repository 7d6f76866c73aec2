"""The results of a suite as one HTML file, or its tables in Markdown."""

from __future__ import annotations

from html import escape
from io import StringIO

from galaxy_al.experiments.suite import Suite
from galaxy_al.experiments.tables import SettingResults, Table, overview, tables_of


def markdown_table(table: Table) -> str:
    """A table in Markdown."""
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{table.title}.** {table.about}\n\n{body}\n"


def markdown_report(suite: Suite, all_found: list[SettingResults]) -> str:
    """All tables in Markdown."""
    parts = [markdown_table(table) for table in overview(all_found)]
    for found in all_found:
        parts.append(f"## {found.name}\n\n{_unfinished(found)}\n")
        parts.extend(map(markdown_table, tables_of(found)))
    return "\n".join(parts)


def html_report(suite: Suite, all_found: list[SettingResults]) -> str:
    """One self-contained page: figures, tables, and the versions of the packages."""
    parts = [_about(suite, "; ".join(sorted({found.versions for found in all_found})))]
    parts.extend(map(_html_table, overview(all_found) if len(all_found) > 1 else ()))
    for found in all_found:
        parts.append(f"<h2>{escape(found.name)}</h2>")
        parts.append(
            f"<p>{found.n_examples:,} examples, {found.n_rare:,} of rare classes "
            f"({found.n_rare / found.n_examples:.1%}). {escape(_unfinished(found))}</p>"
        )
        parts.append(f"<figure>{_svg(suite, found)}</figure>")
        parts.extend(map(_html_table, tables_of(found)))
    return _PAGE.format(title=escape(suite.title), body="\n".join(parts))


def _unfinished(found: SettingResults) -> str:
    """Names the methods that are not complete."""
    if not found.unfinished:
        return ""
    return f"Not complete: {', '.join(found.unfinished)}."


def _about(suite: Suite, versions: str) -> str:
    return (
        f"<h1>{escape(suite.title)}</h1><p>{escape(suite.figure)}, {suite.size}: batches of "
        f"{suite.batch_size}, {suite.rounds} rounds, {len(suite.seeds)} random starts, head "
        f"{escape(suite.head.network)}. Curves are means over the starts, bands one standard "
        f"error.</p><p class=small>{escape(versions)}</p>"
    )


def _svg(suite: Suite, found: SettingResults) -> str:
    from galaxy_al.experiments.plots import setting_figure

    panels = {measure: found.curves[measure] for measure in suite.measures}
    out = StringIO()
    setting_figure(found.name, panels).savefig(out, format="svg")
    return out.getvalue()[out.getvalue().index("<svg") :]


def _html_cell(text: str) -> str:
    is_marked = text.startswith("**")
    shown = escape(text.strip("*"))
    return f"<td><b>{shown}</b></td>" if is_marked else f"<td>{shown}</td>"


def _html_table(table: Table) -> str:
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in table.header)
    rows = "".join(
        f"<tr><th scope=row>{escape(first)}</th>" + "".join(map(_html_cell, rest)) + "</tr>"
        for first, *rest in table.rows
    )
    return (
        f"<h3>{escape(table.title)}</h3><p>{escape(table.about)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }}
h1 {{ font-size: 1.7rem; }} h2 {{ margin-top: 3rem; border-bottom: 2px solid #d55e00; }}
figure {{ margin: 1rem 0; overflow-x: auto; }} svg {{ max-width: 100%; height: auto; }}
table {{ border-collapse: collapse; margin: .5rem 0 1.5rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }}
th:first-child {{ text-align: left; font-weight: 500; }}
thead th {{ border-bottom: 2px solid #888; }}
.small {{ color: #666; font-size: .85rem; }}
</style></head><body>
{body}
</body></html>
"""
