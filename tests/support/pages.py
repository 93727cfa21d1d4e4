"""Parser of HTML pages for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "img", "link", "hr"}


@dataclass
class Element:
    """One element of a page.

    Attributes:
        tag, attributes: tag and attributes.
        inside: tags of the ancestors, the outermost first.
        text: the whole text content.
        children: tags of the direct children.
    """

    tag: str
    attributes: dict[str, str | None]
    inside: tuple[str, ...]
    text: str = ""
    children: list[str] = field(default_factory=list)


class Page(HTMLParser):
    """Parsed HTML page; `elements` holds its elements in document order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {[element.tag for element in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs), tuple(each.tag for each in self._open))
        if self._open:
            self._open[-1].children.append(tag)
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, *tags: str) -> list[Element]:
        """Return the elements with one of these tags."""
        return [element for element in self.elements if element.tag in tags]
