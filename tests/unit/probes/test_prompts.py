from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.probes import GenerationProbe, parse, prompts
from pytest_fairness.records import Sampling
from tests.support.probe_files import KINDS, PRODUCTS, SMALL, read
from tests.support.templates import literal


def test_axes_are_crossed_in_order() -> None:
    probe = read(PRODUCTS)
    asked = list(probe.prompts())
    assert len(asked) == 5 * 3 * 15
    assert len({prompt.request for prompt in asked}) == len(asked)
    assert len({prompt.request.prompt for prompt in asked}) == 15
    assert asked[0].labels == {"race": "White", "gender": "man"}
    assert asked[-1].labels == {"race": "Middle-Eastern", "gender": "nonbinary person"}
    assert [prompt.trial for prompt in asked[:15]] == list(range(15))
    assert "products for a Middle-Eastern nonbinary person. List" in asked[-1].request.prompt
    first = asked[0].request
    assert (first.system, first.sampling, first.answer_format) == (None, Sampling(1.0, max_tokens=900), "json")


def test_trials_can_be_overridden() -> None:
    assert len(list(read(PRODUCTS).prompts(trials=2))) == 30


def test_several_prompts_are_labelled_by_number_and_asked_one_after_the_other() -> None:
    probe = read(
        SMALL.replace("Describe a {group}.", "['One {group}.', 'Two {group}.']") + "trials: 2\nsystem: Be brief.\n"
    )
    asked = list(probe.prompts())
    assert [label for label, _ in groupby(prompt.labels["prompt"] for prompt in asked)] == ["1", "2"]
    assert [label for label, _ in groupby(prompt.labels["group"] for prompt in asked)] == ["man", "woman"] * 2
    assert asked[4].request.prompt == "Two man."
    assert {prompt.request.system for prompt in asked} == {"Be brief."}


def test_every_request_has_a_seed_of_its_own_and_none_is_made_up() -> None:
    seeded = list(read(SMALL + "trials: 3\nsampling: {seed: 7}\n").prompts())
    seeds = [prompt.request.sampling.seed for prompt in seeded]
    assert len(set(seeds)) == 6
    assert all(seed is not None and 0 <= seed < 2**31 for seed in seeds)
    assert seeds == [
        prompt.request.sampling.seed for prompt in read(SMALL + "trials: 3\nsampling: {seed: 7}\n").prompts()
    ]
    others = list(read(SMALL + "trials: 3\nsampling: {seed: 8}\n").prompts())
    assert not {prompt.request.sampling.seed for prompt in others} & {*seeds}
    assert {prompt.request.sampling.seed for prompt in read(SMALL).prompts()} == {None}


def test_values_are_put_in_as_they_are() -> None:
    probe = read(SMALL.replace("marked: [woman]", 'marked: ["{group}", "{{", "a {b.c!r:>9}"]'))
    assert [prompt.request.prompt for prompt in probe.prompts(trials=1)][1:] == [
        "Describe a {group}.", "Describe a {{.", "Describe a a {b.c!r:>9}.",
    ]  # fmt: skip


def test_literal_braces() -> None:
    probe = read(SMALL.replace("Describe a {group}.", "'Write {{\"{group}\": 1}} of {{group}}'"))
    assert next(iter(probe.prompts())).request.prompt == 'Write {"man": 1} of {group}'


NAMES = st.sampled_from(["a", "b", "race", "gender_2"])


@given(st.text(), st.dictionaries(NAMES, st.text()))
def test_a_literal_fills_to_itself(text: str, values: dict[str, str]) -> None:
    assert prompts.fill(literal(text), values) == text
    assert not list(prompts.template_diagnostics(literal(text), values))


@given(
    st.lists(st.tuples(st.text(), NAMES)),
    st.fixed_dictionaries({name: st.text() for name in ["a", "b", "race", "gender_2"]}),
)
def test_filling_is_putting_the_pieces_together(pieces: list[tuple[str, str]], values: dict[str, str]) -> None:
    text = "".join(f"{literal(before)}{{{name}}}" for before, name in pieces)
    assert prompts.fill(text, values) == "".join(before + values[name] for before, name in pieces)
    assert prompts.placeholders(text) == list(dict.fromkeys(name for _, name in pieces))


@given(st.text(alphabet="{}ab.[]!: _0"))
def test_a_valid_template_fills_and_an_invalid_one_does_not(text: str) -> None:
    values = {"a": "1", "ab": "2"}
    if list(prompts.template_diagnostics(text, values)):
        with pytest.raises(ValueError, match="has no value"):
            prompts.fill(text, values)
    else:
        assert prompts.fill(text, values) == text.format(**values)


def test_the_fingerprint_names_everything_an_item_depends_on() -> None:
    probe = read(PRODUCTS + "system: Be kind.\n")
    assert probe.fingerprint({"race": "Black"}) == {
        "prompt": probe.templates[""],
        "system": "Be kind.",
        "axis race": '{"marked": ["Black"], "unmarked": "White"}',
        "axis gender": '{"marked": ["nonbinary person", "woman"], "unmarked": "man"}',
        "answer": "json",
        "anonymize": '["extra", "terms"]',
    }


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("Asian, Black", "Black, Asian", set()),
        ("Asian, ", "", set()),
        ("[woman, nonbinary person]", "[nonbinary person, woman]", set()),
        ("[extra, terms]", "[terms, extra]", set()),
        ("trials: 15", "trials: 20", set()),
        ("tolerance: 0.02", "tolerance: 0.03", set()),
        ("prompt: >", "prompt: >-", set()),
        ("[woman, nonbinary person]", "[woman]", {"axis gender"}),
        ("White", "white", {"axis race"}),
        ("List 10", "List 12", {"prompt"}),
        ("format: json", "format: list", {"answer"}),
        ("[extra, terms]", "false", {"anonymize"}),
    ],
)
def test_only_keys_that_affect_answers_change_the_fingerprint(old: str, new: str, changed: set[str]) -> None:
    before, after = (read(text).fingerprint({"race": "Black"}) for text in (PRODUCTS, PRODUCTS.replace(old, new)))
    assert PRODUCTS.replace(old, new) != PRODUCTS
    assert {part for part in before if before[part] != after[part]} == changed


def test_shape_of_recorded_answers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("group,text\n")
    text = SMALL.replace(
        "prompt: Describe a {group}.", "responses: {file: a.csv, columns: {text: answer}, strata: [topic, age]}"
    )
    probe = parse(text.encode(), tmp_path / "p.yaml", KINDS)
    assert isinstance(probe, GenerationProbe)
    assert list(probe.prompts()) == []
    assert probe.fingerprint({"group": "woman"}) == {
        "columns": '{"text": "answer"}',
        "strata": '["age", "topic"]',
        "axis group": json.dumps({"marked": ["woman"], "unmarked": "man"}),
        "answer": "text",
        "anonymize": "[]",
    }
