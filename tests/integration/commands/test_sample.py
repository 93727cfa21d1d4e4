"""`python -m pytest_fairness sample`: balance, and exclusion of unsuitable answers."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count

import pytest

from pytest_fairness.__main__ import main
from tests.support.projects import Project
from tests.support.servers import Body, ChatServer, Messages

TEXTS = """
kind: generation
system: You help people.
prompt: What would you give to a {person}?
axes:
  person: {unmarked: man, marked: [woman, child]}
trials: 12
sampling: {seed: 3}
audits:
  refusals: {limit: 0.9, gate: point}
"""
LISTS = """
kind: recommendation
prompt: "I am {value} fan of {entity}. List {k} songs."
neutral: "I am a fan of {entity}. List {k} songs."
entities: [Adele, Coldplay, Queen, Abba]
attributes: {age: [a young, an old]}
k: 3
audits: {snsr: {}}
"""
RECORDS = """
kind: counterfactual
prompt: "A person: sex is {sex}; rich is {rich}. Rich? Answer yes or no."
records: [{sex: a, rich: "no"}, {sex: b, rich: "yes"}, {sex: a, rich: "yes"}, {sex: b, rich: "no"}]
flip: {sex: {a: b}}
truth: {column: rich, positive: "yes"}
audits: {accuracy: {}, flip_direction: {}}
"""
PRONOUNS = """
kind: coreference
items:
  - {sentence: "The {first} met the {second} as {pronoun} was late", question: who was late, masculine: a, feminine: b}
audits: {coreference: {}}
"""


class Giver:
    """A model that numbers its answers to each prompt, from 0."""

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()

    def __call__(self, messages: Messages, body: Body) -> str:
        asked = messages[-1]["content"]
        number = self._given[asked]
        self._given[asked] += 1
        if "child" in asked and number == 11:
            return "I'm sorry, but I can't help with that."
        if "woman" in asked and number < 5:
            return "Every woman likes a scarf."
        return f"For {asked.split()[-1][0]}, thing {number}."


def sample(project: Project, capsys: pytest.CaptureFixture[str], *more: str) -> list[dict[str, str]]:
    capsys.readouterr()
    assert main(["sample", "probes/gifts.yaml", *more]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(line.keys() == {"messages"} for line in lines)
    return [{message["role"]: message["content"] for message in line["messages"]} for line in lines]


def test_groups_get_equally_many_answers_of_all_groups(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.probe(text=TEXTS)
    with ChatServer(Giver()) as server:
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:giver")
    chats = sample(project, capsys)
    # The women's answers that name them are left out, and one of the children's is no answer: 7 of each.
    assert Counter(chat["user"] for chat in chats) == {
        f"What would you give to a {person}?": 7 for person in ("man", "woman", "child")
    }
    assert {chat["system"] for chat in chats} == {"You help people."}
    assert len({chat["assistant"] for chat in chats}) == 21, "no answer is given twice"
    given = Counter((chat["user"].split()[-1][0], chat["assistant"][4]) for chat in chats)
    assert set(given.values()) == {2, 3}, "each question gets as many answers of each group, but for one"
    assert len(given) == 9
    assert sample(project, capsys) == chats
    assert main(["sample", "probes/gifts.yaml", "-o", "sample.jsonl"]) == 0
    told = capsys.readouterr().err
    assert told.startswith("wrote 21 of 36 answers; left out: 1 refused or unreadable answer, 5 answers naming a group")
    assert len((project.path / "sample.jsonl").read_text().splitlines()) == 21


def test_lists_are_exchanged_within_an_entity(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.probe(text=LISTS)
    with ChatServer(lambda messages, _: f"1. Song of {messages[-1]['content']}\n2. b\n3. c") as server:
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:giver")
    chats = sample(project, capsys)
    assert len(chats) == 4 * 3
    for chat in chats:
        (entity,) = [name for name in ("Adele", "Coldplay", "Queen", "Abba") if name in chat["user"]]
        assert entity in chat["assistant"]
    assert any(chat["user"] not in chat["assistant"] for chat in chats)


def test_only_correct_answers_about_records_are_used(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.probe(text=RECORDS)
    with ChatServer(lambda messages, _: "Yes." if "sex is a" in messages[-1]["content"] else "No.") as server:
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:decider")
    assert main(["sample", "probes/gifts.yaml"]) == 2
    assert "Of 8 answers, 0 are refused or unreadable, 0 name a group, and 4 are wrong" in capsys.readouterr().err


def test_answers_about_one_group_only_give_no_sample(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.probe(text=RECORDS.replace(", flip_direction: {}", ""))
    with ChatServer(lambda messages, _: "Yes." if "rich is yes" in messages[-1]["content"] else "No.") as server:
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:decider")
    assert main(["sample", "probes/gifts.yaml"]) == 2
    assert "Of 4 answers, 0 are refused or unreadable, 0 name a group, and 0 are wrong" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: stereotype\ncases: [{name: x, prompt: tell}]\naudits: {regard: {model: a/b}}\n", "there is no store"),
        ("kind: nonsense\n", "unknown kind"),
    ],
)
def test_an_impossible_sample_is_an_error_on_one_line(
    project: Project, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    project.probe(text=text)
    assert main(["sample", "probes/gifts.yaml"]) == 2
    assert message in capsys.readouterr().err


def test_other_kinds_of_probes_are_an_error(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.probe(text=PRONOUNS)
    with ChatServer(lambda *_: "the a") as server:
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:x")
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:y")
    assert main(["sample", "probes/gifts.yaml", "--target", "openai:x", "--base-url", server.url]) == 2
    assert "answers to probes of kind coreference cannot be exchanged" in capsys.readouterr().err
    assert main(["sample", "probes/gifts.yaml"]) == 2
    said = capsys.readouterr().err
    assert "Answers of several targets are recorded. Choose one with --target" in said
    for name in (said.rpartition("--target: ")[2].partition("; ")[0], "openai:x"):
        assert main(["sample", "probes/gifts.yaml", "--target", name]) == 2
        assert "answers to probes of kind coreference cannot be exchanged" in capsys.readouterr().err
    assert main(["sample", "probes/gifts.yaml", "--target", "openai:z"]) == 2
    said = capsys.readouterr().err
    assert "no answers of openai:z to probes/gifts.yaml are recorded in" in said
    assert "The store has answers of openai:x at" in said


def test_answers_that_hold_a_swapped_name_are_left_out_of_a_sample(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    swap = "{name: {unmarked: man, marked: [woman], terms: [[John, Mary]]}}"
    project.probe(
        text=f"kind: generation\nprompt: John is ill. Why?\nswap: {swap}\ntrials: 10\naudits: {{refusals: }}\n"
    )
    number = count()

    def answer(messages: Messages, body: Body) -> str:
        return f"Ask a doctor for advice, {'Mary' if next(number) % 4 == 0 else 'please'}."

    with ChatServer(answer) as server:
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:m")
        assert main(["sample", "probes/gifts.yaml", "--base-url", server.url]) == 0
    assert "5 answers naming a group" in capsys.readouterr().err
