from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from pytest_fairness import kinds
from pytest_fairness.probes import KindSchema, json_schema, schema_text
from pytest_fairness.reports.files import schema_text as report_schema_text
from tests.support.probe_files import KINDS, PRODUCTS, SMALL, errors, read

REGENERATE = "the models changed: run `python docs/generate.py`"


@cache
def validator() -> Draft7Validator:
    return Draft7Validator(json_schema(KINDS))


@cache
def real_schema() -> dict[str, Any]:
    return json_schema(kinds.schemas())


def valid(text: str) -> bool:
    return bool(validator().is_valid(YAML(typ="safe", pure=True).load(StringIO(text))))


def test_it_is_a_draft_07_schema() -> None:
    schema = json_schema(KINDS)
    Draft7Validator.check_schema(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert schema["$id"] == "urn:pytest-fairness:probe", "editors and catalogues know the schema by this name"


def described(schema: dict[str, Any], part: dict[str, Any]) -> bool:
    """Return whether an editor can show a description: the part's own, or that of its reference."""
    if "description" in part:
        return True
    references = [part, *part.get("allOf", ())]
    names = [inner["$ref"].removeprefix("#/definitions/") for inner in references if "$ref" in inner]
    return any(described(schema, schema["definitions"][name]) for name in names)


@pytest.mark.parametrize("known", [KINDS, kinds.schemas()], ids=["of the tests", "real"])
def test_every_key_is_described(known: dict[str, KindSchema]) -> None:
    schema = json_schema(known)
    seen = 0
    for name, definition in schema["definitions"].items():
        for key, part in definition.get("properties", {}).items():
            assert described(schema, part), f"{name}.{key}"
            seen += 1
    assert seen > 30


def report_schema() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(report_schema_text())
    return content


@pytest.mark.parametrize("schema", [real_schema, report_schema], ids=["probe", "report"])
def test_strict_validators_accept_it(schema: Callable[[], dict[str, Any]]) -> None:
    """`ajv` rejects a schema with unknown formats, or with a required key that the same schema does not define."""
    seen = 0
    stack: list[Any] = [schema()]
    while stack:
        part = stack.pop()
        stack.extend(part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())
        if isinstance(part, dict) and isinstance(part.get("required"), list):
            assert set(part["required"]) <= set(part["properties"])
            seen += 1
        assert not (isinstance(part, dict) and isinstance(part.get("format"), str)), part
    assert seen > 10


def test_every_reference_leads_somewhere_and_has_no_neighbours() -> None:
    schema = real_schema()
    stack: list[Any] = [schema]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            if "$ref" in part:
                assert list(part) == ["$ref"]
                assert part["$ref"].removeprefix("#/definitions/") in schema["definitions"]
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)


@pytest.mark.parametrize(
    "text",
    [
        PRODUCTS,
        SMALL,
        SMALL.replace("Describe a {group}.", "['One {group}.', 'Two {group}.']"),
        SMALL + "anonymize: {names: true, terms: [hijab]}\n",
        SMALL + "anonymize: {names: [Emily]}\n",
        SMALL + "anonymize: false\nname: n-1\nmarks: [nightly]\nalpha: 0.1\nsystem:\ndescription: why\n",
        SMALL + "variants: {kind: {system: Be kind., prompt: ['{group}']}}\nsampling: {seed: 0, top_p: 1}\n",
    ],
)
def test_a_probe_that_the_loader_accepts_is_valid_in_the_schema(text: str) -> None:
    read(text)
    assert valid(text)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "kind: generatoin",
        SMALL.replace("prompt: Describe a {group}.", ""),
        SMALL.replace("[woman]", "[]"),
        SMALL.replace("[woman]", "[5]"),
        SMALL.replace("man, ", "'', "),
        SMALL.replace("group: {", "my-group: {"),
        SMALL.replace("{jsd: }", "{jds: }"),
        SMALL.replace("{jsd: }", "{}"),
        SMALL.replace("{jsd: }", "{jsd: {tolerance: -1}}"),
        SMALL.replace("{jsd: }", "{svm: {features: count}}"),
        SMALL + "trials: 0",
        SMALL + "trials: '3'",
        SMALL + "alpha: 1",
        SMALL + "name: a b",
        SMALL + "answer: {format: xml}",
        SMALL + "anonymize: true",
        SMALL + "anonymize: []",
        SMALL + "other: 1",
        SMALL + "sampling: {temperature: hot}",
        SMALL + "responses: {columns: {text: a}}",
    ],
)
def test_a_probe_that_is_invalid_in_the_schema_is_rejected_by_the_loader(text: str) -> None:
    assert not valid(text)
    assert errors(text)


@pytest.mark.parametrize("place", ["package", "docs"])
def test_the_shipped_schema_is_that_of_the_models(place: str) -> None:
    expected = schema_text(kinds.schemas())
    if place == "package":
        found = files("pytest_fairness.probes").joinpath("probe.schema.json").read_text(encoding="utf-8")
    else:
        found = (Path(__file__).parents[3] / "docs" / "probe.schema.json").read_text(encoding="utf-8")
    assert found == expected, REGENERATE


def test_the_reference_explains_every_key_of_a_probe() -> None:
    docs = Path(__file__).parents[3] / "docs" / "reference"
    page = "".join(
        path.read_text(encoding="utf-8")
        for path in [*docs.glob("*.md"), docs.parent / "how-to" / "recorded-answers.md"]
    )
    without_audits = {name: KindSchema(kind.model, {}) for name, kind in KINDS.items()}
    own = {*json_schema(without_audits)["definitions"], "generation.jsd"}
    definitions = real_schema()["definitions"]
    keys = {key for name in own for key in definitions[name].get("properties", {})}
    assert {"axes", "unmarked", "seed", "strata", "gate"} <= keys
    assert [key for key in sorted(keys) if not re.search(rf"[`{{]{key}[`:]", page)] == []
