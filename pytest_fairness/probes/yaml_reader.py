"""Reader of YAML: returns a tree, or raises errors with their positions; no input causes any other exception.

The tree is built from the events of ruamel.yaml's parser, so that no objects other than text, numbers, booleans, lists
and mappings are constructed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from pytest_fairness.probes.diagnostics import Document, Lines, Node, not_text, quoted
from pytest_fairness.records import Json

MAX_BYTES = 1_000_000
"""Maximum size of a probe file in bytes; also the maximum number of characters in the values of all its aliases."""

MAX_DEPTH = 50
"""Maximum depth of nesting; the parser's time grows with the square of the depth."""

_MAX_DIGITS = 100
# YAML 1.1 reads `yes` and `no` as booleans, as many authors expect; YAML 1.2 reads them as text.
_WORDS: dict[str, Json] = dict.fromkeys(("", "~", "null", "Null", "NULL")) | {
    spelling: meaning
    for words, meaning in ((("true", "y", "yes", "on"), True), (("false", "n", "no", "off"), False))
    for word in words
    for spelling in (word, word.capitalize(), word.upper())
}
"""Texts without quotes that are no texts, with their values."""
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
CURES = {
    "expected <block end>": "check the indentation: the keys of one mapping, and the dashes of one list, begin in the "
    "same column",
    "mapping values are not allowed": "check the indentation, or put a text that contains a colon in quotes",
    "could not find expected ':'": "write a colon and a blank after the key, or put the text in quotes",
    "'\\t' that cannot start": "indent with blanks in place of tabs",
    "cannot start any token": "put the text in quotes",
    "expected alphabetic or numeric character": "put the text in quotes",
    "expected URI": "put the text in quotes",
    "expected ',' or": "close the bracket, or put a comma between the values",
    "unexpected end of stream": "close the quotation mark or bracket",
}
"""What to do about an error of the YAML parser, by a part of its message."""
_BEGINS_AS_VALUE = re.compile(r"\s*(?:- +)*(?:[^\s{}\[\]\"'#:]+: +)?(?:\{.*\}|\[.*\]|\".*\"|'.*')\s*,?$")
"""The part of a line before an error, if the parser took the beginning of a text for a complete value."""
_STRING_TAG = "tag:yaml.org,2002:str"


class DocumentError(Exception):
    """Error after which the rest of a text cannot be read; it holds a message and a character index."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index
        self.message = message


def decode(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise DocumentError(0, f"the probe file has more than {MAX_BYTES:,} bytes: put data into a separate file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", errors="replace")
        raise DocumentError(len(before), "not UTF-8 text: save the file in the encoding UTF-8") from None


def parse(text: str) -> Document:
    builder = _Builder(text)
    try:
        root = builder.build(_Yaml(typ="safe").parse(text))  # in C, 20 times as fast as the parser in Python
    except (YAMLError, UnicodeError):
        # The parser in Python says more about an error, and reads halves of surrogate pairs.
        builder = _Builder(text)
        root = builder.build(builder.safely(_Yaml(typ="safe", pure=True).parse(text)))
    if not isinstance(root.value, dict):
        if root.value is None:
            raise DocumentError(0, "the file is empty; a probe begins with `kind:`")
        kind = "a list" if isinstance(root.value, list) else "a single value"
        raise DocumentError(root.start, f"a probe is a mapping that begins with `kind:`, not {kind}")
    return Document(text, root, builder.errors)


class _Yaml(YAML):
    """Parser without plug-ins; ruamel would look for plug-in files whenever it reads a probe file."""

    def official_plug_ins(self) -> list[str]:
        return []


class _Builder:
    """Builder of the tree of nodes from the parser's events."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.errors: list[tuple[int, str]] = []
        self._anchors: dict[str, Node | None] = {}
        self._repeated = 0
        self._last = 0
        self._events: Iterator[Any] = iter(())

    def build(self, events: Iterable[Any]) -> Node:
        self._events = iter(events)
        documents = 0
        root = Node(None, 0, 0)
        for event in self._events:
            match type(event).__name__:
                case "DocumentStartEvent":
                    documents += 1
                    if documents > 1:
                        raise DocumentError(
                            event.start_mark.index,
                            "a probe file holds one document, but `---` begins another: move the other document to its "
                            "own file",
                        )
                case "DocumentEndEvent" | "StreamStartEvent" | "StreamEndEvent":
                    pass
                case _:
                    root = self._node(event, 0)
        return root

    def safely(self, events: Iterable[Any]) -> Iterator[Any]:
        """Yield the parser's events; convert any exception of the parser into a `DocumentError`."""
        try:
            for event in events:
                self._last = event.end_mark.index
                yield event
        except DocumentError:
            raise
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            index = self._last if mark is None else mark.index
            parts = [str(part) for part in (error.problem, error.context) if part]
            hint = next((f"; {cure}" for phrase, cure in CURES.items() if phrase in parts[0]), "") if parts else ""
            if _BEGINS_AS_VALUE.match(self.text[:index].rpartition("\n")[2]):
                hint = "; put the whole text in quotes, because it begins like a mapping, a list or a quoted text"
            raise DocumentError(index, f"not valid YAML: {', '.join(parts) or 'cannot be read'}{hint}") from None
        except YAMLError as error:
            # ruamel's reader raises this for a character that YAML forbids.
            raise DocumentError(getattr(error, "position", self._last), _unreadable_message(error)) from None
        except Exception as error:  # noqa: BLE001 - the parser raises assorted built-in errors for hostile input
            raise DocumentError(self._last, f"not valid YAML ({type(error).__name__})") from None

    def _node(self, event: Any, depth: int) -> Node:
        kind, node = type(event).__name__, Node(None, event.start_mark.index, event.end_mark.index)
        if depth > MAX_DEPTH:
            raise DocumentError(node.start, f"the file is nested more than {MAX_DEPTH} levels deep: use fewer levels")
        if kind == "AliasEvent":
            return self._alias(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        tag = None if event.ctag is None else str(event.ctag)
        if tag is not None and not (kind == "ScalarEvent" and tag == _STRING_TAG):
            short = tag.replace("tag:yaml.org,2002:", "!!")
            self.errors.append((node.start, f"YAML tags are not supported: remove {quoted(short)}"))
        if kind == "ScalarEvent":
            node.value = self._text(event)
            node.size = len(node.value) + 1
            if event.implicit[0]:
                node.written = node.value
                node.value = self._plain_scalar(node.value, node.start)
        elif kind == "SequenceStartEvent":
            node.value = []
            for child in self._children(node, "SequenceEndEvent", depth):
                node.value.append(child)
        else:
            node.value = {}
            for key in self._children(node, "MappingEndEvent", depth):
                child = self._node(next(self._events), depth + 1)
                node.size += child.size
                name = self._key(key)
                if name is not None and name in node.value:
                    line, _ = Lines(self.text).position(node.keys[name])
                    cure = "remove one of the two keys"
                    self.errors.append((key.start, f"the key {quoted(name)} is already used in line {line}: {cure}"))
                elif name is not None:
                    node.value[name] = child
                    node.keys[name] = key.start
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _children(self, node: Node, end: str, depth: int) -> Iterator[Node]:
        """Yield the nodes up to the event that ends a list or a mapping; add their sizes to those of the node."""
        for event in self._events:
            if type(event).__name__ == end:
                node.end = event.end_mark.index
                return
            child = self._node(event, depth + 1)
            node.size += child.size
            yield child

    def _alias(self, event: Any) -> Node:
        start, name = event.start_mark.index, event.anchor
        if name not in self._anchors:
            cure = "write the value in place of the alias, or quote the text"
            raise DocumentError(start, f"the alias *{name} has no anchor &{name} before it: {cure}")
        node = self._anchors[name]
        if node is None:
            raise DocumentError(start, f"the alias *{name} is inside its own anchor: remove the alias")
        self._repeated += node.size
        if self._repeated > MAX_BYTES:
            raise DocumentError(
                start, f"the values of the file's aliases have more than {MAX_BYTES:,} characters: use fewer aliases"
            )
        return replace(node, start=start, end=event.end_mark.index)

    def _text(self, event: Any) -> str:
        """Return the text of a scalar, with each surrogate pair joined to one character."""
        text: str = event.value
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            message = "the text has half of a character (one surrogate): write the whole character"
            self.errors.append((event.start_mark.index, message))
            return text.encode("utf-8", errors="replace").decode()

    def _plain_scalar(self, text: str, start: int) -> Json:
        """Return the value of a text without quotes."""
        value: Json = _WORDS.get(text, text)
        if isinstance(value, str) and len(text) <= _MAX_DIGITS:
            if _INTEGER.fullmatch(text):
                return int(text, 10 if text.lstrip("+-").isdigit() else 0)
            value = float(text) if _FLOAT.fullmatch(text) else text
        if _NOT_FINITE.fullmatch(text) or (isinstance(value, float) and abs(value) == float("inf")):
            self.errors.append((start, f"{text} is not a valid number: write a finite number"))
            return 0.0
        return value

    def _key(self, key: Node) -> str | None:
        """Return a key as text; `None` for a list, a mapping or a merge key. Add an error for a key that is no text."""
        if isinstance(key.value, list | dict):
            self.errors.append((key.start, "a key must be a name, not a list or a mapping"))
            return None
        if key.written == "<<":
            self.errors.append((key.start, "merge keys (`<<`) are not supported: write out the merged keys"))
            return None
        if isinstance(key.value, str):
            return key.value
        written = key.written or ""
        self.errors.append((key.start, not_text("a key", key)))
        return written


def _unreadable_message(error: Exception) -> str:
    character = getattr(error, "character", None)
    if isinstance(character, int):
        return f"the character U+{character:04X} is not allowed in YAML"
    return "not valid YAML: " + " ".join(str(error).split())[:200]
