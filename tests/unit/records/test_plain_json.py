from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_fairness.records import json_text, json_value

# With halves of surrogate pairs ("Cs").
TEXTS = st.text(st.characters(codec=None, categories=("L", "N", "P", "Z", "Cc", "Cs")))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
@example({"a": "\ud800", "\udfff": [2**80, -0.0, 5e-324]})
def test_a_value_is_read_as_it_was_written(value: Any) -> None:
    text = json_text(value)
    assert json_value(text) == value
    assert json.loads(text) == value
    assert json_value(json.dumps(value)) == value


def test_values_that_are_not_finite_are_kept() -> None:
    nan, *infinities = json_value(json_text([math.nan, math.inf, -math.inf]))
    assert math.isnan(nan)
    assert infinities == [math.inf, -math.inf]


@pytest.mark.parametrize("text", ["", "[1,", "{'a': 1}", "nan"])
def test_a_text_that_is_not_json_is_an_error_with_a_position(text: str) -> None:
    with pytest.raises(json.JSONDecodeError, match="line 1 column"):
        json_value(text)


def test_what_json_cannot_hold_is_an_error() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        json_text({"a": object()})
