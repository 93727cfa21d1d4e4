"""Pages that are filed: facts, sentences and tables, as Markdown, HTML or JSON; nothing of them is folded or cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from pytest_fairness.reports import markdown

TO_WRITE = "to be filled in"
"""What stands in place of what only the reader knows."""


@dataclass(frozen=True)
class Sheet:
    """Table of texts, of which the first `heads` columns name the rows, and the others hold numbers or `words`."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    heads: int = 1
    words: bool = False


@dataclass(frozen=True)
class Section:
    """Section of a page; with `own_page`, it begins a new sheet of paper."""

    title: str
    sentences: Sequence[str] = ()
    sheets: Sequence[Sheet] = ()
    own_page: bool = False


@dataclass(frozen=True)
class Page:
    """Page with facts by their names; a fact without a text is still to be written."""

    title: str
    facts: Sequence[tuple[str, str]]
    sections: Sequence[Section]

    def as_markdown(self) -> str:
        """Return the page as Markdown."""
        escaped = markdown.escaped
        lines = [f"# {escaped(self.title)}", ""]
        lines += [f"- {escaped(name)}: {escaped(text or TO_WRITE)}" for name, text in self.facts]
        for section in self.sections:
            lines += ["", f"## {escaped(section.title)}", "", *(f"- {escaped(text)}" for text in section.sentences)]
            for sheet in section.sheets:
                rows = ([escaped(cell) for cell in row] for row in sheet.rows)
                lines += ["", escaped(sheet.caption), "", *markdown.table([*map(escaped, sheet.columns)], rows)]
        return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"

    def as_html(self) -> str:
        """Return the page as HTML, which prints each section with `own_page` on a sheet of its own."""
        from pytest_fairness.reports.html import render

        return render("page.html.j2", page=self, to_write=TO_WRITE)

    def as_json(self) -> str:
        """Return the page as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n"


FORMATS: Mapping[str, Callable[[Page], str]] = {".html": Page.as_html, ".md": Page.as_markdown, ".json": Page.as_json}
"""Function that renders a page, by the suffix of the file."""
