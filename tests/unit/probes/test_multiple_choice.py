"""Probe files of multiple-choice questions: sets in the probe, published files, samples, and their errors."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import multiple_choice
from pytest_fairness.probes.multiple_choice import Question, QuestionsFile, drawn
from tests.support import choices
from tests.support.choices import line, lines, published, read

SETS = choices.probe(2)


def errors(text: str, path: Path = Path("/project/probes/choices.yaml")) -> str:
    with pytest.raises(ProbeError) as caught:
        read(text, path)
    return str(caught.value)


def file_errors(folder: Path, rows: list[dict[str, Any]], keys: str = "") -> str:
    with pytest.raises(ProbeError) as caught:
        published(folder, rows, keys)
    return str(caught.value)


# Sets of questions


def test_a_set_makes_each_context_with_each_question() -> None:
    own = [question for question in SETS.questions.values() if question.template == "story 0"]
    assert [(each.name, each.answer, each.aligned) for each in own] == [
        ("story 0/ambiguous/negative", 2, None),
        ("story 0/ambiguous/nonnegative", 2, None),
        ("story 0/stereotyped/negative", 0, True),
        ("story 0/stereotyped/nonnegative", 1, True),
        ("story 0/other/negative", 1, False),
        ("story 0/other/nonnegative", 0, False),
    ]
    assert own[2].context == (
        "A grandfather and a grandson met on day 0. The grandfather forgot the key, and the grandson found it."
    )
    assert {each.options for each in own} == {("The grandfather", "The grandson", "Cannot be determined")}


def test_the_stereotypical_answer_depends_on_the_polarity() -> None:
    negative, nonnegative, *_ = SETS.questions.values()
    assert (negative.stereotypical, nonnegative.stereotypical) == (0, 1)


def test_a_prompt_shows_the_options_in_a_seeded_order_with_letters() -> None:
    prompts = list(SETS.prompts())
    first = prompts[0].request.prompt
    assert first.startswith("A grandfather and a grandson met on day 0.\n\nWho forgot the key on day 0?\n\nA. ")
    assert first.endswith("\n\nAnswer with the letter only.")
    assert len({prompt.request.prompt for prompt in prompts}) == len(prompts) == 12
    assert [prompt.request.prompt for prompt in SETS.prompts()] == [prompt.request.prompt for prompt in prompts]
    orders = {question.order(SETS.seed) for question in choices.probe(12).questions.values()}
    assert len(orders) == 6
    other = choices.probe(2, more="shuffle: 1\n")
    assert [prompt.request.prompt for prompt in other.prompts()] != [prompt.request.prompt for prompt in prompts]
    assert [prompt.labels for prompt in other.prompts()] != [prompt.labels for prompt in prompts]


def test_the_written_order_letters_and_wording_can_be_chosen() -> None:
    probe = choices.probe(
        1, more='shuffle: false\nletters: ["1", "2", "3"]\nprompt: "{question} ({context})\\n{options}"\n'
    )
    assert next(iter(probe.prompts())).request.prompt == (
        "Who forgot the key on day 0? (A grandfather and a grandson met on day 0.)\n"
        "1. The grandfather\n2. The grandson\n3. Cannot be determined"
    )


def test_each_trial_is_a_request() -> None:
    prompts = list(choices.probe(1, more="trials: 3\n").prompts())
    assert len(prompts) == 18
    assert len({(prompt.request.prompt, prompt.request.trial) for prompt in prompts}) == 18


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("unknown: Cannot be determined}", "other_one: x}", "`items[0].options.unknown` is missing"),
        ("other: The grandson", "other: the  GRANDFATHER", "two options are the same: write three different options"),
        ("name: story 1", "name: Story 0", "'Story 0' is repeated: each set needs its own name"),
        ("name: story 1", "name: a/b", "must be one line of at most 100 characters without '/'"),
        ("audits:", "letters: [A, B]\naudits:", "`letters` must have at least 3 entries"),
        ("audits:", "letters: [A, B, b]\naudits:", "'b' is repeated"),
        ("audits:", "shuffle: true\naudits:", "`shuffle` must be"),
        ("audits:", "prompt: '{context} {question}'\naudits:", "this prompt does not use {options}"),
        ("audits:", "prompt: '{context} {question} {option}'\naudits:", "unknown placeholder '{option}'"),
        ("audits:", "variants: {v: {prompt: '{question}'}}\naudits:", "this prompt does not use {context}"),
        ("audits:", "responses: {file: a.csv, columns: {item: x}}\naudits:", "'item' is not a column"),
    ],
)
def test_an_error_is_located_and_says_what_to_write(old: str, new: str, message: str) -> None:
    text = choices.probe_text(2)
    assert old in text
    assert message in errors(text.replace(old, new, 1))


def test_items_are_required() -> None:
    assert "`items` is missing" in errors("kind: multiple_choice\naudits: {accuracy: }\n")


# Published files


def test_published_lines_are_read_as_they_are(tmp_path: Path) -> None:
    probe = published(tmp_path, lines(16))
    assert list(probe.questions)[:2] == ["Age-0", "Age-1"]
    assert probe.categories == ["Age"]
    found = [
        (each.template, each.negative, each.ambiguous, each.roles, each.options[each.answer])
        for each in list(probe.questions.values())[:4]
    ]
    roles = ("stereotyped", "unknown", "other")
    assert found == [
        ("1", True, True, roles, "Not known"),
        ("1", True, False, roles, "The old man"),
        ("1", False, True, roles, "Not known"),
        ("1", False, False, roles, "The young man"),
    ]


def test_right_answers_agree_with_the_stereotype_as_often_as_not(tmp_path: Path) -> None:
    aligned = Counter(question.aligned for question in published(tmp_path, lines(32)).questions.values())
    assert aligned == {None: 16, True: 8, False: 8}


@pytest.mark.parametrize(
    ("first", "second", "groups", "roles"),
    [
        # Worked examples of the spellings in the published files.
        (("grandfather", "old"), ("grandson", "nonOld"), ["old"], "so"),
        (("grandfather", "old"), ("grandson", "nonOld"), ["nonOld"], "os"),
        (("poor man", "lowSES"), ("rich man", "highSES"), ["low SES"], "so"),
        (("DeShawn", "M-Black"), ("Brad", "M-White"), ["Black", "African American"], "so"),
        (("Latoya", "F-Black"), ("Tyrone", "M-Black"), ["Black", "F"], "so"),
        (("Jamal", "lowSES-African American"), ("Ken", "highSES-White"), ["African American", "lowSES"], "so"),
        (("woman", "woman"), ("man", "man"), ["F"], "so"),
        (("man", "M"), ("woman", "F"), ["women"], "os"),
        (("trans woman", "trans_F"), ("woman", "nonTrans_F"), ["transgender women", "trans"], "so"),
        (("Indian", "AsiaPacific"), ("Irish", "Europe"), ["Indian", "Pakistani"], "so"),
        (("autistic boy", "disabled"), ("classmate", "nonDisabled"), ["autistic people"], "so"),
        # A name never decides: Christian is a person here, and the codes are equal.
        (("Muslim friend", "Muslim"), ("Christian", "Jewish"), ["Muslim"], "so"),
        # Group codes without a match.
        (("Latoya", "F-Black"), ("Tyrone", "M-Black"), ["Black"], "pp"),
        (("the one", "gay"), ("the other", "gay"), ["gay"], "pp"),
        # Equal codes are never scored, even if the labels differ.
        (("Indian", "AsiaPacific"), ("Japanese", "AsiaPacific"), ["Indian"], "pp"),
        (("gay man", "gay"), ("lesbian", "lesbian"), ["gay", "lesbian"], "pp"),
        (("tall man", "tall"), ("fat man", "obese"), ["short"], "pp"),
        (("tall man", "tall"), ("fat man", "obese"), [], "pp"),
        (("grandfather", "old"), ("grandson", "nonOld"), [], "pp"),
    ],
)
def test_group_codes_tell_who_is_stereotyped(
    first: tuple[str, str], second: tuple[str, str], groups: list[str], roles: str
) -> None:
    words = {"s": "stereotyped", "o": "other", "p": "person"}
    expected = (words[roles[0]], "unknown", words[roles[1]])
    assert multiple_choice.roles([first, ("Unknown", "unknown"), second], groups) == expected
    assert multiple_choice.roles([second, ("Unknown", "unknown"), first], groups) == expected[::-1]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"question": ""}, "Age.jsonl:2: `question` must not be empty"),
        (
            {"context_condition": "ambiguous"},
            "Age.jsonl:2: `context_condition` must be one of ambig, disambig, not the text 'ambiguous'",
        ),
        (
            {"question_polarity": "negative"},
            "Age.jsonl:2: `question_polarity` must be one of neg, nonneg, not the text 'negative'",
        ),
        ({"label": 3}, "Age.jsonl:2: `label` must be 0, 1 or 2"),
        ({"label": "0"}, "Age.jsonl:2: `label` must be 0, 1 or 2"),
        ({"label": 1}, "Age.jsonl:2: the right answer must be the unknown option if"),
        ({"ans2": "the OLD man"}, "Age.jsonl:2: two options have the same text"),
        (
            {"answer_info": {"ans0": ["x", "old"]}},
            "Age.jsonl:2: `answer_info.ans1` is missing: label and group code of the option",
        ),
        (
            {"answer_info": {"ans0": ["a", "old"], "ans1": ["b", "nonOld"], "ans2": ["c", "nonOld"]}},
            "Age.jsonl:2: `answer_info` must give exactly one option the group code 'unknown'",
        ),
        ({"additional_metadata": {}}, "Age.jsonl:2: `additional_metadata.stereotyped_groups` is missing"),
        ({"example_id": 0}, "Age.jsonl:2: the question 'Age-0' is also in Age.jsonl:1: remove one of them"),
        ({"category": "a/b"}, "Age.jsonl:2: `category` must be one line of at most 100 characters without '/'"),
        ({"question_index": "x\ny"}, "Age.jsonl:2: `question_index` must be one line"),
        ({"example_id": None}, "Age.jsonl:2: `example_id` must be a whole number or text"),
    ],
)
def test_an_invalid_line_is_an_error_with_its_place(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    assert message in file_errors(tmp_path, [line(0), {**line(1), **changed}])


@pytest.mark.parametrize("name", [*line(0)])
def test_a_missing_field_is_an_error_with_its_place(tmp_path: Path, name: str) -> None:
    row = {key: value for key, value in line(1).items() if key != name}
    assert f"Age.jsonl:2: `{name}` is missing" in file_errors(tmp_path, [line(0), row])


def test_a_file_that_is_cut_off_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = choices.write(tmp_path / "Age.jsonl", lines(16))
    path.write_text(path.read_text("utf-8")[:-40], "utf-8")
    text = "kind: multiple_choice\nitems: {file: Age.jsonl}\naudits: {accuracy: }\n"
    assert "Age.jsonl:16:" in errors(text, tmp_path / "choices.yaml")


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "Age.jsonl").write_text(content, "utf-8")
    text = "kind: multiple_choice\nitems: {file: Age.jsonl}\naudits: {accuracy: }\n"
    assert "Age.jsonl:1: the file holds no questions" in errors(text, tmp_path / "choices.yaml")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (", categories: [Agee]", "no question has the category 'Agee': did you mean 'Age'?"),
        (", categories: []", "`items.categories` must not be empty"),
        (", sample: 17", "the category 'Age' has only 16 questions: lower `sample`"),
        (", sample: 0", "`items.sample` must be at least 1, not 0"),
        (", seed: -1", "`items.seed` must be at least 0"),
        (", samples: 3", "unknown key 'samples' in `items`: did you mean 'sample'?"),
    ],
)
def test_a_selection_that_selects_nothing_is_an_error(tmp_path: Path, keys: str, message: str) -> None:
    assert message in file_errors(tmp_path, lines(16), keys)


def test_several_files_are_read_and_categories_chosen(tmp_path: Path) -> None:
    choices.write(tmp_path / "SES.jsonl", lines(16, category="SES"))
    choices.write(tmp_path / "Religion.jsonl", lines(16, category="Religion"))
    choices.write(tmp_path / "Age.jsonl", lines(16))
    text = 'kind: multiple_choice\nitems: {file: "*.jsonl", categories: [SES, Age], sample: 8}\naudits: {accuracy: }\n'
    probe = read(text, tmp_path / "choices.yaml")
    assert probe.categories == ["SES", "Age"]
    assert Counter(question.category for question in probe.questions.values()) == {"SES": 8, "Age": 8}


def test_sets_of_questions_are_read_from_a_file(tmp_path: Path) -> None:
    sets = [
        {
            "name": f"story {number}",
            "context": "A story.",
            "negative": "Who?",
            "options": {"stereotyped": "The first", "other": "The second", "unknown": "Unknown"},
        }
        for number in range(3)
    ]
    choices.write(tmp_path / "sets.jsonl", sets)
    text = "kind: multiple_choice\nitems: {file: sets.jsonl}\naudits: {accuracy: }\n"
    assert list(read(text, tmp_path / "c.yaml").questions) == [
        f"story {number}/ambiguous/negative" for number in range(3)
    ]
    choices.write(tmp_path / "sets.jsonl", [*sets, {**sets[0], "name": "x", "options": {"other": "x"}}])
    assert "sets.jsonl:4: `options.stereotyped` is missing" in errors(text, tmp_path / "c.yaml")


def test_a_changed_file_is_serialized_differently(tmp_path: Path) -> None:
    def serialized(rows: list[dict[str, Any]]) -> Any:
        items = published(tmp_path, rows).items
        assert isinstance(items, QuestionsFile)
        return items.model_dump()

    before, again = serialized(lines(16)), serialized(lines(16))
    assert before == again
    assert before != serialized([*lines(15), line(15, context="Another story.")])


# Samples


def published_question(row: dict[str, Any]) -> Question:
    (question,) = multiple_choice.PublishedQuestion.model_validate_json(json.dumps(row), strict=True).questions()
    return question


@given(count=st.integers(1, 160), seed=st.integers(0, 3), order=st.randoms(use_true_random=False))
def test_a_sample_is_even_and_does_not_depend_on_the_order(count: int, seed: int, order: Any) -> None:
    questions = [*map(published_question, lines(160))]
    sample = drawn(questions, count, seed)
    assert len({question.name for question in sample}) == count
    assert [question for question in questions if question in sample] == sample
    kinds = Counter((each.ambiguous, each.negative, each.aligned) for each in sample)
    told = [kinds[False, negative, aligned] for negative in (True, False) for aligned in (True, False)]
    assert max(told) - min(told) <= 3
    assert abs(kinds[True, True, None] - kinds[True, False, None]) <= 3
    by_template = Counter(each.template for each in sample)
    assert max(by_template.values()) - min(by_template[str(number)] for number in range(1, 21)) <= 1
    shuffled = [*questions]
    order.shuffle(shuffled)
    assert {each.name for each in drawn(shuffled, count, seed)} == {each.name for each in sample}


def test_a_larger_sample_contains_a_smaller_one_and_another_seed_draws_another() -> None:
    questions = [*map(published_question, lines(160))]
    first, larger, other = (
        {each.name for each in drawn(questions, count, seed)} for count, seed in ((40, 0), (80, 0), (40, 1))
    )
    assert first < larger
    assert first != other
