"""Measurements, comparisons and explanations as JSON, and where their details are read."""

from __future__ import annotations

import ast
import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.records import (
    Comparison,
    Contributor,
    Evidence,
    Explanation,
    Listing,
    Measurement,
    Quote,
)

PACKAGE = Path(__file__).parents[3] / "pytest_fairness"
HAIR = Contributor("hair", "woman", 0.6, 0.1, "share of texts", "hair (10% → 60%)")
EXPLANATION = Explanation(
    phrase="3 significant words",
    change="2 words grew",
    unit="words",
    amount="2 words grew",
    contributors=(HAIR, Contributor("oil")),
    contributions={"hair": 0.5},
    rates=(Contributor("yes", "woman", 0.4, 0.2),),
    lists=(Listing("used more for woman", (HAIR,)),),
    words=(HAIR,),
    notes=("refused: woman 3 of 20",),
    sentences=("“Who?” → “She.”",),
    examples=(Quote("woman", "Hair oil.", before="A lamp.", labels={"sex": "woman"}), Quote("man", None, "refused")),
    finding="Answers for woman say hair.",
    placebo="0.1",
    served="small",
    served_change="small → large",
)
EVIDENCE = Evidence(
    units=40,
    observations=30,
    step=0.025,
    bounds=(-0.1, 0.3),
    effective_size=38.5,
    smallest_share=math.inf,
    needed_documents=(None, 60),
    other_change=(0.1, 0.02),
    either_side=True,
    compared=(40, 80),
    effect_basis=(0.4, 0.6),
    counting={"a": 0.5},
)


@pytest.mark.parametrize(
    "record",
    [
        EXPLANATION,
        Measurement(0.5, (0.1, 0.9), 0.2, 0.01, {"a": 3}, {}, evidence=EVIDENCE, explanation=EXPLANATION, placebo="no"),
        Comparison(0.5, evidence=EVIDENCE, explanation=EXPLANATION, not_compared="absent"),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_comes_back_from_json_as_it_was(record: Any) -> None:
    assert type(record).from_json(json.loads(json.dumps(record.to_json()))) == record


@pytest.mark.parametrize("record", [EXPLANATION, EVIDENCE], ids=["explanation", "evidence"])
def test_every_field_is_tried(record: Any) -> None:
    defaults = type(record)()
    assert [each.name for each in fields(record) if getattr(record, each.name) == getattr(defaults, each.name)] == []


def keys_of_details(module: Path) -> list[str]:
    """Return each place of a module that reads a detail by its name."""
    found = []
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        match node:
            case ast.Subscript(value=read, slice=ast.Constant(value=str())):
                pass
            case ast.Call(func=ast.Attribute(value=read, attr="get"), args=[ast.Constant(value=str()), *_]):
                pass
            case _:
                continue
        if ast.unparse(read).endswith("details"):
            found.append(f"{module.name}:{node.lineno}")
    return found


@pytest.mark.parametrize(
    "place", ["baselines", "run", "audits/rules.py", "audits/info.py", "audits/base.py", "audits/answer_checks.py"]
)
def test_decisions_runs_and_baselines_read_no_detail_by_name(place: str) -> None:
    modules = [PACKAGE / place] if place.endswith(".py") else (PACKAGE / place).glob("*.py")
    assert [read for module in modules for read in keys_of_details(module)] == []
