"""The reader of YAML gets the same values from the parser in C and from the parser in Python."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from pytest_fairness.probes.diagnostics import Node
from pytest_fairness.probes.yaml_reader import DocumentError, parse

ROOT = Path(__file__).parents[3]
PROBES = sorted(
    path.relative_to(ROOT) for folder in ("probes", "docs", "tests") for path in (ROOT / folder).rglob("*.yaml")
)
KEYS = st.text("abcé_", min_size=1).map("k".__add__)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("aé😀 :-#,[]{}\"'\n\\"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def plain(node: Node) -> Any:
    """Return the value of a node without positions."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items()}
    return [plain(child) for child in node.value] if isinstance(node.value, list) else node.value


@pytest.mark.parametrize("path", PROBES, ids=str)
def test_files_have_the_values_that_ruamel_reads(path: Path) -> None:
    text = (ROOT / path).read_text("utf-8")
    assert plain(parse(text).root) == YAML(typ="safe", pure=True).load(text)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.booleans())
def test_values_are_read_as_they_were_written(content: dict[str, Any], flow: bool) -> None:
    out = StringIO()
    yaml = YAML(typ="safe")  # the writer in C; the one in Python writes `{k: : -}`, which no parser reads
    yaml.default_flow_style = flow
    yaml.dump(content, out)
    assert plain(parse(out.getvalue()).root) == content


def test_an_error_that_only_one_parser_reports_is_not_an_error() -> None:
    # YAML allows a tab inside an unquoted text; the parser in Python rejects it.
    assert plain(parse("a: b\tc\n").root) == {"a": "b\tc"}
    # A half of a surrogate pair cannot be passed to the parser in C.
    assert plain(parse('a: "\\ud83d\\ude00"\n').root) == {"a": "😀"}


def test_the_parser_in_python_explains_errors() -> None:
    with pytest.raises(DocumentError, match="check the indentation"):
        parse("a: 1\n  b: 2\n")
