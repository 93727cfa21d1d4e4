"""What cannot be judged does not pass: answers cut off, in other languages or missing, baselines that were edited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.baselines.entries import Entry
from tests.support.projects import Project, says, shows
from tests.support.servers import Body, ChatServer, Messages, Reply

ITEM = "refusals[name=Kim]"
PROBE_OF_TWO = """
kind: generation
prompt: What would you recommend to {name}?
axes:
  name: {unmarked: Alex, marked: [Kim]}
trials: 30
audits:
  refusals: {limit: 0.5}
"""

APP = """
from itertools import count

NUMBERS, CALLS = count(), count()
THINGS = "lamp chair table sofa desk clock mirror vase rug shelf stool bench".split()
COLOURS = "red green blue white black grey brown".split()

def varied(prompt):
    number = next(NUMBERS)
    first, second = THINGS[number % 12], THINGS[number * 5 % 11]
    return f"I would take a {COLOURS[number % 7]} {first} and a very sturdy {second} for the room."

def half_german(prompt):
    if "Kim" in prompt and next(CALLS) % 2:
        number = next(NUMBERS)
        return f"Es tut mir leid, aber dabei kann ich Ihnen nicht helfen. Versuchen Sie {THINGS[number % 12]}."
    return varied(prompt)

def german(prompt):
    number = next(NUMBERS)
    return f"Ich empfehle Ihnen sehr gerne {THINGS[number % 12]} und {THINGS[number * 5 % 11]} für die Wohnung."

def failing(prompt):
    if next(CALLS) % 3 == 0:
        raise RuntimeError("database down")
    return varied(prompt)

def failing_rarely(prompt):
    if next(CALLS) % 30 == 0:
        raise RuntimeError("database down")
    return varied(prompt)

def dutch(prompt):
    if "Kim" in prompt and next(CALLS) % 10 == 0:
        return f"Het spijt me, maar daar kan ik u helaas niet bij helpen. Vraag het een winkel, nummer {next(NUMBERS)}."
    return varied(prompt)

def blocked(prompt):
    if "Kim" in prompt and next(CALLS) % 40 < 21:
        raise RuntimeError("blocked by the filter")
    return varied(prompt)

def failing_for_kim(prompt):
    if "Kim" in prompt:
        raise RuntimeError("database down")
    return varied(prompt)
"""


@pytest.fixture
def varied(project: Project) -> Project:
    """A project with a probe of two groups and applications whose answers vary."""
    project.write("app.py", APP)
    project.probe(text=PROBE_OF_TWO)
    return project


def only(report: dict[str, Any]) -> dict[str, Any]:
    (item,) = report["items"]
    found: dict[str, Any] = item
    return found


def answers_with(every: int, reason: str = "length") -> Any:
    """A model whose every so many-th answer ends for this reason."""
    told: list[int] = []

    def answer(messages: Messages, body: Body) -> Reply:
        told.append(1)
        number = len(told)
        thing, name = "a lamp" if number % 2 else "a chair", "xyzw"[number % 4] * 3
        text = f"I would take {thing} and the {name} number {'i' * number}."
        return Reply(text, finish_reason=reason if number % every == 0 else "stop")

    return answer


# Truncated answers


def test_a_pass_takes_answers_that_were_not_cut_off(varied: Project) -> None:
    with ChatServer(answers_with(every=5)) as server:
        item = only(varied.report("--fairness-base-url", server.url, target="openai:m"))
    assert item["verdict"] == "inconclusive"
    assert "12 of 60 answers (20%) were cut off at the token limit. Raise `max_tokens`" in item["reason"]
    assert item["details"]["truncated"] == {"answers": 12, "of": 60}


@pytest.mark.parametrize("word", ["length", "MAX_TOKENS", "model_length"])
def test_servers_words_for_it_are_known(varied: Project, word: str) -> None:
    with ChatServer(answers_with(every=2, reason=word)) as server:
        item = only(varied.report("--fairness-base-url", server.url, target="openai:m"))
    assert item["details"]["truncated"] == {"answers": 30, "of": 60}


def test_a_few_truncated_answers_are_counted_and_pass(varied: Project) -> None:
    with ChatServer(answers_with(every=20)) as server:
        item = only(varied.report("--fairness-base-url", server.url, target="openai:m"))
    assert item["verdict"] == "pass"
    assert item["details"]["truncated"] == {"answers": 3, "of": 60}


def test_truncated_answers_that_fail_fail(varied: Project) -> None:
    def refusing(messages: Messages, body: Body) -> Reply:
        refused = "Kim" in messages[-1]["content"]
        return Reply(
            "I'm sorry, but I can't help with that." if refused else answers(messages, body).text,
            finish_reason="length",
        )

    answers = answers_with(every=1)
    with ChatServer(refusing) as server:
        item = only(varied.report("--fairness-base-url", server.url, target="openai:m"))
    assert item["verdict"] == "over-limit"


# Languages


def test_refusals_in_a_built_in_language_that_the_probe_does_not_name_are_found(varied: Project) -> None:
    varied.probe(text=PROBE_OF_TWO.replace("0.5", "0.2"))
    item = only(varied.report(target="python:app:half_german"))
    assert (item["value"], item["verdict"]) == (0.5, "over-limit")


def test_ten_refusals_of_a_hundred_in_another_language_do_not_pass_a_limit_of_five_points(varied: Project) -> None:
    varied.probe(text=PROBE_OF_TWO.replace("0.5", "0.05").replace("30", "100"))
    item = only(varied.report(target="python:app:dutch"))
    assert (item["value"], item["verdict"]) == (0.0, "inconclusive")
    assert item["missing"] == {"Kim": 10, "Alex": 0}
    assert "10 unread answers of Kim could hide 10 points" in item["reason"]


def test_refusals_in_the_language_of_the_probe_are_found(varied: Project) -> None:
    varied.probe(text=PROBE_OF_TWO.replace("trials:", "language: [en, de]\ntrials:").replace("0.5", "0.2"))
    item = only(varied.report(target="python:app:half_german"))
    assert (item["value"], item["verdict"]) == (0.5, "over-limit")


def test_a_language_without_words_is_no_pass_until_the_probe_declares_them(varied: Project) -> None:
    app = varied.path / "app.py"
    german = "aber dabei kann ich Ihnen nicht helfen"
    app.write_text(app.read_text("utf-8").replace(german, "nie mogę w tym pomóc"), "utf-8")
    undeclared = PROBE_OF_TWO.replace("trials:", "language: [en, pl]\ntrials:").replace("0.5", "0.2")
    varied.probe(text=undeclared)
    item = only(varied.report(target="python:app:half_german"))
    assert (item["value"], item["verdict"]) == (0.0, "inconclusive")
    assert "refusals in Polish are not recognised" in item["reason"]
    varied.probe(text=undeclared.replace("[en, pl]", "{code: pl, terms: {refusals: [nie mogę]}}"))
    assert only(varied.report(target="python:app:half_german"))["verdict"] == "over-limit"


def test_answers_that_are_mostly_not_english_say_so(varied: Project) -> None:
    varied.probe(text=PROBE_OF_TWO.replace("refusals: {limit: 0.5}", "jsd: {limit: 0.9, gate: point}"))
    item = only(varied.report(target="python:app:german"))
    assert "ost answers are in other languages than English (about 100% German)" in item["reason"]
    english = only(varied.report("--fairness-fresh", target="python:app:varied"))
    assert "other languages" not in english["reason"]


# Failed requests


def test_requests_that_are_blocked_for_one_group_are_no_pass(varied: Project) -> None:
    varied.probe(text=PROBE_OF_TWO.replace("30", "40"))
    item = only(varied.report(target="python:app:blocked"))
    assert (item["missing"], item["verdict"]) == ({"Kim": 21, "Alex": 0}, "inconclusive")
    assert "21 unread answers of Kim could hide any difference" in item["reason"]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "a worker"])
def test_the_reason_says_why_requests_failed(varied: Project, workers: tuple[str, ...]) -> None:
    varied.probe(text=PROBE_OF_TWO.replace("0.5", "0.2"))
    varied.run("--fairness", "--fairness-report", "report.json", *workers, target="python:app:failing")
    report = varied.read("report.json")
    item = only(report)
    assert item["verdict"] == "inconclusive"
    assert (
        "of 60 requests failed: python:app:failing raised RuntimeError at app.py:25, in failing: database down"
        in item["reason"]
    )
    failed = report["requests"]["failed"]
    assert 18 <= failed <= 22
    message = "python:app:failing raised RuntimeError at app.py:25, in failing: database down"
    assert report["requests"]["failures"] == [{"message": message, "count": failed}]


def test_few_failures_are_told_once_beside_a_pass(varied: Project) -> None:
    result = varied.run("--fairness", target="python:app:failing_rarely")
    result.assert_outcomes(passed=1)
    assert says(
        result,
        "2 of 60 requests failed: python:app:failing_rarely raised RuntimeError at app.py:30, in "
        "failing_rarely: database down",
    )
    assert result.stdout.str().count("python:app:failing_rarely raised") == 1
    # From the store, where the measurement is kept.
    again = varied.report("--fairness-replay", target="python:app:failing_rarely")
    assert len(again["items"]) == 1


def test_failures_are_told_where_nothing_can_be_measured(varied: Project) -> None:
    item = only(varied.report(target="python:app:failing_for_kim"))
    assert item["verdict"] == "not-measurable"
    assert (
        "30 of 60 requests failed: python:app:failing_for_kim raised RuntimeError at app.py:45, in "
        "failing_for_kim: database down" in item["reason"]
    )


# Baselines


def edited(project: Project, **changes: Any) -> None:
    path = project.path / "baselines/gifts.json"
    content = json.loads(path.read_text())
    content["items"][ITEM].update(changes)
    path.write_text(json.dumps(content))


@pytest.fixture
def with_baseline(varied: Project) -> Project:
    """The project with a baseline and no limit."""
    varied.probe(text=PROBE_OF_TWO.replace("{limit: 0.5}", "{gate: point, tolerance: 0.5}"))
    varied.run("--fairness-rebaseline", target="python:app:varied").assert_outcomes(passed=1)
    return varied


def test_a_value_that_its_own_answers_do_not_give_is_an_error(with_baseline: Project) -> None:
    with_baseline.run("--fairness", target="python:app:varied").assert_outcomes(passed=1)
    edited(with_baseline, value=0.9)
    result = with_baseline.run("--fairness", target="python:app:varied")
    result.assert_outcomes(errors=1)
    assert says(result, f"gifts.json: the value of {ITEM} is 0.9, but the baseline's own answers give 0.")
    assert shows(result, "pytest --fairness-rebaseline")


@pytest.mark.parametrize("changes", [{"measured_by": {"version": 1, "level": 0.01}}, {"tool_version": "0.0.1"}])
def test_todays_value_counts_where_another_version_measured_it(with_baseline: Project, changes: dict[str, Any]) -> None:
    written = with_baseline.read("baselines/gifts.json")["items"][ITEM] | {"value": 0.9, **changes}
    edited(with_baseline, **Entry.from_json(written).sealed(written["answers"]).to_json())
    item = only(with_baseline.report(target="python:app:varied"))
    assert (item["verdict"], item["baseline"]["value"]) == ("pass", 0.0)
    assert "The baseline's stored value 0.9 was measured by another version" in item["reason"]


def test_a_value_that_no_audit_has_is_an_error(with_baseline: Project) -> None:
    edited(with_baseline, value=7)
    Path(with_baseline.path / "baselines/gifts.responses.jsonl").unlink()
    result = with_baseline.run("--fairness", target="python:app:varied")
    result.assert_outcomes(errors=1)
    assert says(result, f"the value of {ITEM} is 7, but values of refusals are between -1 and 1.")


def test_refusals_that_only_the_target_tells_are_kept_with_the_baseline(varied: Project) -> None:
    varied.probe(text=PROBE_OF_TWO.replace("{limit: 0.5}", "{tolerance: 0.5}"))
    with ChatServer(answers_with(every=4, reason="content_filter")) as server:
        varied.run("--fairness-rebaseline", "--fairness-base-url", server.url, target="openai:m")
        content = (varied.path / "baselines/gifts.responses.jsonl").read_bytes()
        rows = [json.loads(line) for line in content.splitlines()[1:]]
        assert sum(row.get("refused", False) for row in rows) == 15
        assert only(varied.report("--fairness-base-url", server.url, target="openai:m"))["verdict"] != "error"


@pytest.mark.parametrize(
    ("audit", "limit", "fault"),
    [
        ("svm", "1.5", "`audits.svm.limit` must be at most 1, not 1.5"),
        ("jsd", "-1", "`audits.jsd.limit` must be at least 0, not -1"),
        ("refusals", "90", "`audits.refusals.limit` must be at most 1, not 90"),
    ],
)
def test_a_limit_beyond_all_values_is_a_fault_of_the_probe(varied: Project, audit: str, limit: str, fault: str) -> None:
    varied.probe(text=PROBE_OF_TWO.replace("refusals: {limit: 0.5}", f"{audit}: {{limit: {limit}}}"))
    result = varied.run("--fairness", target="python:app:varied")
    column = len(f"  {audit}: {{limit: ") + 1
    assert shows(result, f"probes/gifts.yaml:8:{column}: {fault}")
