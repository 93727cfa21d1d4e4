"""Immutable data of a run, from the request to the verdict, which can be converted to and from JSON.

This package does not use pytest, the network or files.
"""

from __future__ import annotations

from pytest_fairness.records.answers import (
    MISSING,
    REFUSAL_CLASSES,
    REFUSALS,
    Answer,
    Answers,
    Judged,
    Judging,
    OtherColumn,
    RowsWithoutGroup,
    Status,
)
from pytest_fairness.records.effects import Effect, Size
from pytest_fairness.records.measurements import (
    Comparison,
    Concern,
    Interval,
    Measurement,
    Pair,
    Reversal,
    SharedChange,
)
from pytest_fairness.records.plain_json import MAX_LINE, Json, json_text, json_value, without_nonfinite
from pytest_fairness.records.requests import (
    CALLED,
    NOT_CALLED,
    SAMPLING_PARAMETERS,
    TOO_LONG,
    AnswerFormat,
    Message,
    NumberFormat,
    Prompt,
    Request,
    Response,
    Sampling,
    Selection,
    is_block,
    is_thought,
    thoughts_of,
    with_thoughts,
)
from pytest_fairness.records.results import ItemResult, Verdict, VerdictName, outcome_of
from pytest_fairness.records.tool_calls import Reply, ToolCall, calls_in, reply_in, reply_of, unknown_keys

__all__ = [
    "CALLED",
    "MAX_LINE",
    "MISSING",
    "NOT_CALLED",
    "REFUSALS",
    "REFUSAL_CLASSES",
    "SAMPLING_PARAMETERS",
    "TOO_LONG",
    "Answer",
    "AnswerFormat",
    "Answers",
    "Comparison",
    "Concern",
    "Effect",
    "Interval",
    "ItemResult",
    "Json",
    "Judged",
    "Judging",
    "Measurement",
    "Message",
    "NumberFormat",
    "OtherColumn",
    "Pair",
    "Prompt",
    "Reply",
    "Request",
    "Response",
    "Reversal",
    "RowsWithoutGroup",
    "Sampling",
    "Selection",
    "SharedChange",
    "Size",
    "Status",
    "ToolCall",
    "Verdict",
    "VerdictName",
    "calls_in",
    "is_block",
    "is_thought",
    "json_text",
    "json_value",
    "outcome_of",
    "reply_in",
    "reply_of",
    "thoughts_of",
    "unknown_keys",
    "with_thoughts",
    "without_nonfinite",
]
