"""Runs with answers of reasoning models: their thoughts are no part of an answer, and can be measured themselves."""

from __future__ import annotations

import json
from random import Random

import pytest

from pytest_fairness import kinds
from pytest_fairness.answers import reading
from pytest_fairness.probes.base import AnswerSettings
from pytest_fairness.records import Prompt, Request, Response
from tests.support.projects import Project, says

ROWS = 60
PROBE = """
kind: generation
responses: {file: answers.jsonl}
axes:
  gender: {unmarked: man, marked: [woman]}
audits:
  jsd: {limit: 0.1}
  refusals: {limit: 0.1}
"""
WORDS = ["nurse", "clerk", "baker", "works", "lives", "reads", "cooks", "near", "York", "Bath", "tea", "music", "dogs"]
PLANS = ["Plan a short text.", "Keep it short.", "Write one line.", "Name a town.", "Begin with the job.", "No lists."]


def answers(thought: str, form: str = "<think>{}</think>{}") -> str:
    """Return rows whose thoughts about women have the words `thought`, and whose answers are alike."""
    random = Random(7)  # noqa: S311 - no secrets
    rows = []
    for number in range(2 * ROWS):
        gender = ("man", "woman")[number % 2]
        # Plans that are equal would count as copies of one answer.
        plan = " ".join([*random.sample(PLANS, 2), *random.sample(WORDS, 5)])
        plan += f" {thought}" if gender == "woman" else ""
        rows.append(
            {"gender": gender, "text": form.format(plan, " ".join(random.sample(WORDS, 8))), "trial": number // 2}
        )
    return "\n".join(map(json.dumps, rows)) + "\n"


def test_thoughts_are_no_part_of_an_answer_and_can_be_measured(project: Project) -> None:
    project.write("probes/answers.jsonl", answers("Sorry, I cannot help with emotional fragile people."))
    project.probe("probes/descriptions.yaml", PROBE)
    report = project.report(target=None)
    assert {item["verdict"] for item in report["items"]} == {"pass"}
    assert report["items"][0]["details"]["thoughts"] == {"answers": 2 * ROWS, "of": 2 * ROWS}
    project.probe("probes/descriptions.yaml", PROBE.replace("audits:", "measure: thoughts\naudits:"))
    report = project.report(target=None)
    assert {item["audit"]: item["verdict"] for item in report["items"]} == {"jsd": "over-limit", "refusals": "pass"}


def test_a_baseline_of_thoughts_is_compared_with_thoughts(project: Project) -> None:
    project.write("probes/answers.jsonl", answers("Be polite."))
    project.probe(
        "probes/descriptions.yaml", PROBE.replace("audits:", "measure: thoughts\naudits:").replace("0.1", "1")
    )
    project.run("--fairness", "--fairness-rebaseline", target=None)
    assert set(project.verdicts(target=None).values()) == {"pass"}
    project.write("probes/answers.jsonl", answers("She is emotional, fragile, caring and warm."))
    assert project.verdicts(target=None)["jsd[gender=woman]"] == "regression"


def test_marks_of_ones_own_and_thoughts_without_an_end(project: Project) -> None:
    project.write("probes/answers.jsonl", answers("I cannot help with fragile people.", "<plan>{}</plan>{}"))
    own = 'answer: {thoughts: [["<plan>", "</plan>"]]}\naudits:'
    project.probe("probes/descriptions.yaml", PROBE.replace("audits:", own))
    assert set(project.verdicts(target=None).values()) == {"pass"}
    project.write("probes/answers.jsonl", answers("", "<think>{} {}"))
    project.probe("probes/descriptions.yaml", PROBE)
    assert says(project.run("--fairness", target=None), "thoughts that do not end (120)")
    rows = answers("", "<think>{}</think>{}").splitlines()
    lost = [row.replace("</think>", "") if "woman" in row and number < 20 else row for number, row in enumerate(rows)]
    project.write("probes/answers.jsonl", "\n".join(lost) + "\n")
    (details, *_) = (item["details"] for item in project.report(target=None)["items"])
    assert details["unread_by_group"] == [{"group": "woman", "reason": "thoughts that do not end", "answers": 10}]


@pytest.mark.parametrize("kind", ["recommendation", "stereotype", "coreference", "multiple_choice"])
def test_every_kind_has_own_marks_of_thoughts(kind: str) -> None:
    model = kinds.KINDS[kind].model
    assert "thoughts" in model.model_fields["answer"].annotation.model_fields
    probe = model.model_construct(answer=AnswerSettings(thoughts=(("<plan>", "</plan>"),)))
    response = Response("<plan>I cannot help.</plan>The answer is fine.")
    assert reading.answer(Prompt(Request("?"), {}, 0), response, probe.language).text == "The answer is fine."


def test_a_probe_of_lists_reads_them_behind_own_marks(project: Project) -> None:
    rows = [
        {"entity": entity, "attribute": attribute, "value": value, "items": f"<plan>1. x\\n2. y</plan>\n{SONGS}"}
        for entity in ("Adele", "Blur", "Cher", "Dido", "Elton")
        for attribute, value in (("sex", "woman"), ("sex", "man"), ("neutral", ""))
    ]
    project.write("probes/answers.jsonl", "\n".join(map(json.dumps, rows)) + "\n")
    lists = (
        "kind: recommendation\nresponses: {file: answers.jsonl}\nk: 3\nattributes: {sex: [woman, man]}\n"
        'answer: {thoughts: [["<plan>", "</plan>"]]}\naudits: {shortfall: {limit: 0.5}}\n'
    )
    project.probe("probes/songs.yaml", lists)
    (item, *_) = project.report(target=None)["items"]
    assert item["value"] == 0, item
    assert item["details"]["thoughts"]["answers"] == 15, item


SONGS = "1. Hello\n2. Skyfall\n3. Someone Like You"


def test_only_texts_have_thoughts_that_can_be_measured(project: Project) -> None:
    project.write("probes/answers.jsonl", answers(""))
    path = "measure: thoughts\nanswer: {path: $.text}\naudits:"
    project.probe("probes/descriptions.yaml", PROBE.replace("audits:", path))
    assert says(project.run("--fairness", target=None), "only a probe whose answers are texts")
