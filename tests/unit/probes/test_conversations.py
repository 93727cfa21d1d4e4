"""Conversations of generation probes: messages before the prompt, and turns after the answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_fairness.asking.store import decode_request, encode_request, response_key
from pytest_fairness.errors import ProbeError
from pytest_fairness.kinds import schemas
from pytest_fairness.probes import CounterfactualProbe, GenerationProbe, parse
from pytest_fairness.records import Answer, Message, Prompt, Request, Sampling, Status
from tests.support import choices
from tests.support.probe_files import KINDS, read

CHAT = """\
kind: generation
messages:
  - {role: user, content: "I am a {group}."}
  - {role: assistant, content: "Nice to meet you, {group}."}
  - {role: user, content: Which job suits me?}
axes:
  group: {unmarked: man, marked: [woman]}
trials: 2
audits: {jsd: }
"""
TURNS = """\
kind: generation
system: Be brief.
prompt: ["Which job suits a {group}?", "A {group} asks for a job."]
turns: ["Why for a {group}?", "And the salary?"]
axes:
  group: {unmarked: man, marked: [woman]}
trials: 2
audits: {jsd: }
"""


def answered(prompt: Prompt, text: str | None = "Baker.", status: Status = Status.OK) -> Answer:
    return Answer(prompt.labels, prompt.trial, text, status, text if status is Status.OK else None)


def asked_to_the_end(probe: GenerationProbe, last: str = "2000") -> list[Answer]:
    answers = [answered(prompt) for prompt in probe.prompts()]
    while more := probe.follow_ups.next_prompts(answers):
        answers += [answered(prompt, last if prompt.labels["turn"] == "3" else "Bread.") for prompt in more]
    return answers


def test_messages_come_before_the_prompt() -> None:
    first = list(read(CHAT).prompts())[-1].request
    assert first.prompt == "Which job suits me?"
    assert first.history == (Message("user", "I am a woman."), Message("assistant", "Nice to meet you, woman."))
    assert [message.role for message in first.messages] == ["user", "assistant", "user"]
    assert first.shown_prompt.splitlines()[1] == "assistant: Nice to meet you, woman."


def test_each_turn_follows_the_answer_to_the_last_one() -> None:
    probe = read(TURNS)
    assert probe.follow_ups.possible
    first = [answered(prompt, f"Baker {number}.") for number, prompt in enumerate(probe.prompts())]
    second = probe.follow_ups.next_prompts(first)
    assert len(second) == 2 * 2 * 2
    assert second[0].request.history == (
        Message("user", "Which job suits a man?"),
        Message("assistant", "Baker 0."),
    )
    assert (second[0].request.prompt, second[0].request.system) == ("Why for a man?", "Be brief.")
    assert second[-1].labels == {"group": "woman", "prompt": "2", "turn": "2"}
    third = probe.follow_ups.next_prompts([*first, *(answered(prompt, "Bread.") for prompt in second)])
    assert [message.content for message in third[-1].request.messages] == [
        "Be brief.",
        "A woman asks for a job.",
        "Baker 7.",
        "Why for a woman?",
        "Bread.",
        "And the salary?",
    ]
    assert probe.follow_ups.next_prompts(asked_to_the_end(probe)) == []


def test_one_answer_of_a_conversation_is_measured() -> None:
    probe = read(TURNS)
    for turn, text in (("last", "2000"), ("2", "Bread."), ("1", "Baker."), ("all", "Baker.\nBread.\n2000")):
        own = read(f"{TURNS}measure: {turn}\n")
        measured = own.follow_ups.measured(asked_to_the_end(own))
        assert {answer.text for answer in measured} == {text}
        assert [(answer.labels, answer.trial) for answer in measured] == [
            (prompt.labels, prompt.trial) for prompt in probe.prompts()
        ]


def test_a_conversation_without_an_answer_ends_and_is_missing() -> None:
    probe = read(TURNS)
    first = [answered(prompt, None, Status.FAILED) for prompt in probe.prompts()]
    assert probe.follow_ups.next_prompts(first) == []
    assert {answer.status for answer in probe.follow_ups.measured(first)} == {Status.FAILED}
    # A part of the conversation, as after an interrupted run, is no answer either.
    begun = [answered(prompt) for prompt in probe.prompts()]
    assert {(answer.status, answer.content) for answer in probe.follow_ups.measured(begun)} == {(Status.FAILED, None)}


def test_a_refused_turn_goes_on_and_counts_only_where_it_is_measured() -> None:
    for turn, status in (("last", Status.OK), ("all", Status.REFUSED), ("1", Status.REFUSED)):
        probe = read(f"{TURNS}measure: {turn}\n")
        answers = asked_to_the_end(probe)
        answers = [
            replace(a, status=Status.REFUSED, content=None, text="I can't help.") if "turn" not in a.labels else a
            for a in answers
        ]
        assert {answer.status for answer in probe.follow_ups.measured(answers)} == {status}


def test_the_history_is_part_of_a_request() -> None:
    plain = Request("And then?", sampling=Sampling(seed=3))
    said = replace(plain, history=(Message("user", "Hello"), Message("assistant", "Hi")))
    other = replace(plain, history=(Message("user", "Hello"), Message("assistant", "Go away")))
    assert len({response_key("m", request) for request in (plain, said, other)}) == 3
    assert len({request.with_own_seed().seed for request in (plain, said, other)}) == 3
    assert decode_request(encode_request(said)) == said
    assert "history" not in encode_request(plain)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CHAT + "prompt: Hello {group}\n", "either `prompt` or `messages`"),
        (
            CHAT.replace("user, content: Which", "assistant, content: Which"),
            "the model answers the last message",
        ),
        (CHAT.replace("role: assistant", "role: system"), "messages"),
        (CHAT.replace("{group}", "you"), "the axis 'group' is used in no prompt"),
        (CHAT.replace("am a {group}", "am a {gruop}"), "did you mean 'group'"),
        (CHAT + "measure: all\n", "only a conversation with `turns` has several answers"),
        (CHAT + "variants: {v: {prompt: 'A {group}'}}\n", "a variant of this probe can change only `system`"),
        (TURNS + "measure: 4\n", "there is no turn 4"),
        (TURNS + "measure: first\n", "measure"),
        (TURNS + "measure: all\nanswer: {format: json}\n", "only answers that are texts can be joined"),
        (TURNS.replace("group", "turn"), "rename 'turn' under `axes`"),
        (TURNS.replace("Why for a {group}?", "Why for a {person}?"), "unknown placeholder"),
        (
            "kind: generation\nturns: [Why?]\naxes: {g: {unmarked: a, marked: [b]}}\naudits: {jsd: }\n",
            "`prompt` is missing",
        ),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(ProbeError) as error:
        read(text)
    assert message in str(error.value)


DECISIONS = """\
kind: counterfactual
messages:
  - {role: user, content: "My name is {name}, and I am {age}."}
  - {role: assistant, content: "Hello {name}."}
  - {role: user, content: "I would like a refund."}
turns: ["Do I get it, yes or no?"]
records:
  - {id: a, name: Ann, age: 30, title: Ms}
  - {id: b, name: Bob, title: Mr}
flip: {name: {Ann: Bob}, with: {title: {Ms: Mr}}}
audits: {flip_rate: }
"""


def decided(text: str) -> CounterfactualProbe:
    probe = parse(text.encode(), Path("/project/probes/small.yaml"), KINDS)
    assert isinstance(probe, CounterfactualProbe)
    return probe


def _place(prompt: Prompt) -> tuple[str, str]:
    """Return the record and the form of a prompt; `flipped again` for the repetition of a flipped prompt."""
    form = prompt.labels["form"]
    return prompt.labels["record"], f"flipped {form}" if form == "again" and "to" in prompt.labels else form


def test_a_decision_about_a_record_follows_a_conversation() -> None:
    probe = decided(DECISIONS)
    asked = {_place(prompt): prompt for prompt in probe.prompts()}
    flipped = asked["b", "flipped"]
    assert [message.content for message in flipped.request.messages] == [
        "My name is Ann.",
        "Hello Ann.",
        "I would like a refund.",
    ]
    # The repeated conversation is a conversation of its own in all turns.
    answers = [answered(prompt, "Of course.") for prompt in probe.prompts()]
    more = {_place(prompt): prompt for prompt in probe.follow_ups.next_prompts(answers)}
    assert more["b", "flipped"].request.messages[-2:] == (
        Message("assistant", "Of course."),
        Message("user", "Do I get it, yes or no?"),
    )
    for form, again in (("own", "again"), ("flipped", "flipped again")):
        assert more["a", form].request.messages == more["a", again].request.messages
        assert more["a", form].request.trial != more["a", again].request.trial
    assert more["a", "own"].choices == ("yes", "no")
    last = [replace(answered(prompt, "Yes."), content="yes") for prompt in more.values()]
    measured = probe.follow_ups.measured([*answers, *last])
    assert {answer.content for answer in measured} == {"yes"}
    assert [(answer.labels, answer.trial) for answer in measured] == [(p.labels, p.trial) for p in probe.prompts()]
    assert probe.follow_ups.next_prompts([*answers, *last]) == []


def test_the_conversation_of_decisions_is_part_of_the_fingerprint() -> None:
    prints = [
        decided(text).fingerprint({"attribute": "name"})
        for text in (
            DECISIONS,
            DECISIONS.replace("Hello", "Hi"),
            DECISIONS.replace("Do I get", "Will I get"),
            DECISIONS + "measure: 1\n",
        )
    ]
    assert len({str(parts) for parts in prints}) == 4


def test_a_judge_reads_the_conversation_without_the_person() -> None:
    probe = decided(DECISIONS + "answer: {judge: true}\n")
    assert probe.reading.judging is not None
    assert probe.reading.judging.question.splitlines() == [
        "My name is [name], and I am [age].",
        "Hello [name].",
        "I would like a refund.",
        "Do I get it, yes or no?",
    ]
    first = decided(DECISIONS + "answer: {judge: true}\nmeasure: 1\n").reading.judging
    assert first is not None
    assert first.question.endswith("refund.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DECISIONS + "prompt: Is {name} right?\n", "either `prompt` or `messages`"),
        (DECISIONS.replace("{name}", "you"), "no message of this conversation uses {name}, which is flipped"),
        (DECISIONS.replace("Do I", "Do {I}"), "unknown placeholder '{I}'"),
        (DECISIONS.replace("Hello {name}.", "{age}"), "this text is empty for record b, because the record has no age"),
        (DECISIONS + "measure: 3\n", "there is no turn 3"),
        (DECISIONS + "measure: all\n", "only answers that are texts can be joined"),
        (DECISIONS + "variants: {v: {prompt: 'Is {name} right?'}}\n", "a variant of this probe can change only"),
        (
            DECISIONS.replace("name", "turn"),
            "rename 'turn' under `flip`",
        ),
    ],
)
def test_mistakes_in_conversations_about_records_are_named(text: str, message: str) -> None:
    with pytest.raises(ProbeError) as error:
        read(text)
    assert message in str(error.value)


QUIZ = """
messages:
  - {role: user, content: "{context}"}
  - {role: assistant, content: I see.}
  - {role: user, content: "{question} {options}"}
turns: [Are you sure? Answer with the letter only.]
"""


def test_a_question_with_options_follows_a_conversation() -> None:
    probe = choices.probe(1, more=QUIZ)
    prompts = list(probe.prompts())
    assert prompts[0].request.history[1] == Message("assistant", "I see.")
    assert prompts[0].request.history[0].content.startswith("A grandfather and a grandson met")
    assert "A. " in prompts[0].request.prompt
    answers = [answered(prompt, "A") for prompt in prompts]
    (last,) = probe.follow_ups.next_prompts(answers[:1])
    assert last.request.messages[-3:] == (
        prompts[0].request.messages[-1],
        Message("assistant", "A"),
        Message("user", "Are you sure? Answer with the letter only."),
    )
    measured = probe.follow_ups.measured([answers[0], answered(last, "B")])
    assert [(answer.text, answer.labels) for answer in measured] == [("B", prompts[0].labels)]
    plain = choices.probe(1, more=QUIZ.replace("Are you", "Really"))
    assert plain.fingerprint({}) != probe.fingerprint({})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            choices.probe_text(1, more=QUIZ.replace("{context}", "Hello")),
            "no message of this conversation uses {context}",
        ),
        (choices.probe_text(1, more=QUIZ.replace("I see.", '"{i}"')), "unknown placeholder '{i}'"),
        (choices.probe_text(1, more=QUIZ + "measure: all"), "only answers that are texts can be joined"),
        ("kind: stereotype\nturns: [Why?]\naudits: {}\n", "only probes of the kinds counterfactual, generation and"),
    ],
)
def test_mistakes_in_conversations_about_questions_are_named(text: str, message: str) -> None:
    with pytest.raises(ProbeError) as error:
        parse(text.encode(), Path("/project/probes/small.yaml"), schemas())
    assert message in str(error.value)
