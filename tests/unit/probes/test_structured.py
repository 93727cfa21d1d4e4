"""Probes that measure tool calls and values in JSON: requests, fingerprints, conversations and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_fairness.answers import reading
from pytest_fairness.errors import ProbeError
from pytest_fairness.kinds import schemas
from pytest_fairness.probes import CounterfactualProbe, GenerationProbe, parse
from pytest_fairness.records import CALLED, NOT_CALLED, Answer, Prompt, Response, Selection, Status

DECISION = """\
kind: counterfactual
prompt: "{name}, customer {id}: my parcel is lost."
records: [{id: a, name: Ann}, {id: b, name: Bob}]
flip: {name: {Ann: Bob}}
tools:
  - name: escalate
    description: Ask a human to take over.
  - name: refund
    parameters: {type: object, properties: {amount: {type: number}}}
answer: {tool: escalate}
audits: {flip_rate: }
"""
AMOUNT = DECISION.replace("{tool: escalate}", "{tool: refund, path: $.amount, number: {min: 0, max: 100}}").replace(
    "flip_rate: ", "mean_gap: {tolerance: 5}"
)
TEXT = """\
kind: generation
prompt: Write to {name} that the parcel is lost.
axes: {name: {unmarked: Bob, marked: [Ann]}}
tools: [{name: send, parameters: {type: object, properties: {body: {type: string}}}}]
answer: {tool: send, path: $.body}
audits: {jsd: }
"""


def loaded(text: str) -> CounterfactualProbe | GenerationProbe:
    probe = parse(text.encode(), Path("/project/probes/small.yaml"), schemas())
    assert isinstance(probe, CounterfactualProbe | GenerationProbe)
    return probe


def answered(probe: CounterfactualProbe | GenerationProbe, prompt: Prompt, text: str, *calls: str) -> Answer:
    written = json.dumps([{"name": name, "arguments": {}} for name in calls])
    return reading.answer(prompt, Response(text, tool_calls=written if calls else None), probe.language)


def test_the_call_of_a_tool_is_a_decision() -> None:
    probe = loaded(DECISION)
    assert isinstance(probe, CounterfactualProbe)
    assert (probe.reading.choices, probe.positive) == ((CALLED, NOT_CALLED), CALLED)
    prompt = next(probe.prompts())
    assert prompt.selection == Selection("escalate", None)
    assert prompt.request.answer_format == "calls"
    assert prompt.request.tool_definitions == [
        {
            "type": "function",
            "function": {
                "name": "escalate",
                "description": "Ask a human to take over.",
                "parameters": {"type": "object", "properties": {}},
            },
        },
        {
            "type": "function",
            "function": {
                "name": "refund",
                "parameters": {"type": "object", "properties": {"amount": {"type": "number"}}},
            },
        },
    ]
    against = loaded(DECISION.replace("escalate}", "escalate, positive: not called}"))
    assert isinstance(against, CounterfactualProbe)
    assert against.positive == NOT_CALLED


def test_arguments_are_numbers_choices_or_texts() -> None:
    assert next(iter(loaded(AMOUNT).prompts())).selection == Selection("refund", "$.amount", "number")
    assert next(iter(loaded(TEXT).prompts())).selection == Selection("send", "$.body", "text")
    chosen = AMOUNT.replace("number: {min: 0, max: 100}", "choices: [all, part]")
    probe = loaded(chosen.replace("mean_gap: {tolerance: 5}", "flip_rate: "))
    assert probe.reading.choices == ("all", "part")


def test_a_path_without_tool_leads_into_a_structured_answer() -> None:
    probe = loaded(TEXT.replace("tool: send, ", "").replace("tools: [", "description: x #"))
    prompt = next(probe.prompts())
    assert (prompt.request.answer_format, prompt.request.tools) == ("structured", "")
    assert prompt.selection == Selection(None, "$.body", "text")


def test_tools_and_path_are_part_of_the_fingerprint() -> None:
    texts = [
        DECISION,
        DECISION.replace("a human", "a person"),
        DECISION.replace("escalate}", "refund}"),
        DECISION.replace("escalate}", "escalate, positive: not called}"),
        AMOUNT,
        AMOUNT.replace("$.amount", "$.sum"),
    ]
    assert len({str(loaded(text).fingerprint({"attribute": "name"})) for text in texts}) == len(texts)
    assert len({str(loaded(text).fingerprint({})) for text in (TEXT, TEXT.replace("$.body", "$.text"))}) == 2


@pytest.mark.parametrize("measure", ["last", "2"])
def test_a_call_ends_a_conversation_and_is_its_answer(measure: str) -> None:
    probe = loaded(DECISION + f"turns: [And now?, Hello?]\nmeasure: {measure}\n")
    calling, waiting, other = list(probe.prompts())[:3]
    answers = [
        answered(probe, calling, "One moment.", "escalate"),
        answered(probe, waiting, "Please wait."),
        answered(probe, other, "", "refund"),
    ]
    (second,) = probe.follow_ups.next_prompts(answers)
    assert second.request.messages[-2:] == (("assistant", "Please wait."), ("user", "And now?"))
    assert second.request.tools == waiting.request.tools
    answers.append(answered(probe, second, "Please wait."))
    (third,) = probe.follow_ups.next_prompts(answers)
    answers.append(answered(probe, third, "", "escalate"))
    assert probe.follow_ups.next_prompts(answers) == []
    measured = probe.follow_ups.measured(answers)
    waited = CALLED if measure == "last" else NOT_CALLED
    assert [(answer.status, answer.content) for answer in measured] == [
        (Status.OK, CALLED),
        (Status.OK, waited),
        (Status.OK, NOT_CALLED),
    ]
    assert [answer.labels for answer in measured] == [calling.labels, waiting.labels, other.labels]


def test_a_conversation_that_is_interrupted_before_its_call_is_missing() -> None:
    probe = loaded(DECISION + "turns: [And now?]\n")
    first = answered(probe, next(iter(probe.prompts())), "Please wait.")
    (measured,) = probe.follow_ups.measured([first])
    assert (measured.status, measured.content) == (Status.FAILED, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            DECISION.replace("tool: escalate", "tool: escalated"),
            "'escalated' is not one of the probe's tools: did you mean 'escalate'?",
        ),
        (DECISION.replace("answer: {tool: escalate}\n", ""), "no audit measures calls of these tools"),
        (DECISION.replace("name: refund", "name: escalate"), "'escalate' is repeated: each tool needs its own name"),
        (DECISION.replace("name: refund", "name: give money"), "tools[1].name"),
        (DECISION.replace("escalate}", "escalate, choices: [a, b]}"), "remove `choices`, or add the `path`"),
        (DECISION.replace("escalate}", "escalate, judge: true}"), "remove `judge`, or add the `path`"),
        (DECISION.replace("escalate}", "escalate, positive: 'yes'}"), "'yes' is not one of the choices"),
        (DECISION.replace("escalate}", "escalate, path: $.a, judge: true}"), "a judge model reads free text"),
        (
            DECISION.replace("escalate}", "escalate, path: team}"),
            "`answer.path` must be a JSONPath: it does not begin with $",
        ),
        (DECISION.replace("escalate}", "escalate, path: '$.['}"), "must be a JSONPath"),
        (DECISION.replace("escalate}", "escalate, path: '$.a[*]'}"), "must lead to one value"),
        (DECISION.replace("escalate}", "escalate, path: '$[?search(@, \"(a+)+$\")]'}"), "must lead to one value"),
        (DECISION.replace("parameters", "arguments"), "unknown key 'arguments'"),
        (TEXT.replace(", path: $.body", ""), "a tool call is not a text: add the `path` of one"),
        (TEXT + "turns: [Why?]\nmeasure: all\n", "only answers that are texts can be joined"),
        (
            TEXT.replace("prompt: Write", "responses: {file: a.csv}\ndescription: Write"),
            "remove `tools` or `responses`",
        ),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(ProbeError) as error:
        loaded(text)
    assert message in str(error.value)
