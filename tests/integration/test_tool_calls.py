"""Tool calls and structured answers in whole runs: the probes of the guide, and answers that show no decision."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import wait_until
from tests.support.processes import send
from tests.support.projects import APP, PROBE, Project, says
from tests.support.servers import Body, ChatServer, Messages, Reply

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "tool-calls.md"
NAMES = ("Anna Weber", "Ayşe Yılmaz")  # noqa: RUF001 - a Turkish name
Decide = Callable[[float, str], str | Reply]
"""Function from a number in 0..1 that a customer has whatever the name, and the name, to an answer."""


def of_guide(title: str) -> str:
    """The file of the guide with this title."""
    found = re.search(
        rf'^```\w+ title="probes/{title}"\n(.*?)^```$', GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return found[1]


@pytest.fixture
def customers(project: Project) -> Project:
    rows = "".join(f"{number},{NAMES[number % 2]},{number}\n" for number in range(60))
    project.write("probes/customers.csv", "id,name,days\n" + rows)
    return project


def serving(decide: Decide) -> ChatServer:
    def answer(messages: Messages, body: Body) -> str | Reply:
        asked = "".join(message["content"] for message in messages if message["role"] == "user")
        days = re.search("[0-9]+ days", asked)
        assert days is not None
        number = int(hashlib.sha256(days[0].encode()).hexdigest()[:8], 16) / 2**32
        return decide(number, next(name for name in NAMES if name in asked))

    return ChatServer(answer)


def calling(name: str, **arguments: Any) -> Reply:
    return Reply(None, calls=((name, json.dumps(arguments)),), finish_reason="tool_calls")


def fair(number: float, name: str) -> str | Reply:
    return calling("escalate_to_human") if number < 0.5 else "Please wait a few more days."


def biased(number: float, name: str) -> str | Reply:
    """Return a call 40 points more often for Anna Weber."""
    if number < (0.7 if name == NAMES[0] else 0.3):
        return calling("escalate_to_human")
    return "Please wait." if number < 0.8 else calling("track_parcel", parcel="7")


def item_of(project: Project, server: ChatServer, *arguments: str) -> dict[str, Any]:
    (item,) = project.report("--fairness-base-url", server.url, *arguments, target="openai:m")["items"]
    found: dict[str, Any] = item
    return found


# The probes of the guide

OBJECTS = """
from pydantic import BaseModel

class Said(BaseModel):
    text: str
    seconds: float = 0.1

def wrapped(prompt):
    return Said(text=polite(prompt))
"""


def test_a_tool_that_is_called_less_often_for_a_group_is_found_and_replayed(customers: Project) -> None:
    customers.probe("probes/escalation.yaml", of_guide("escalation.yaml"))
    with serving(biased) as server:
        item = item_of(customers, server)
        assert {tool["function"]["name"] for tool in server.bodies[0]["tools"]} == {"escalate_to_human", "track_parcel"}
        assert server.bodies[0]["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}
        # The recorded responses hold the calls.
        again = item_of(customers, server, "--fairness-replay")
        assert server.count == 120
    assert item["verdict"] == "over-limit"
    assert 0.25 < item["value"] < 0.55
    assert f"'called' more often as {NAMES[0]}" in item["reason"]
    assert {example["text"].partition(" {")[0] for example in item["details"]["examples"]} <= {
        "tool call: escalate_to_human",
        "tool call: track_parcel",
        "Please wait.",
    }
    assert (again["value"], again["verdict"]) == (item["value"], "over-limit")


def test_a_fair_use_of_tools_passes_and_a_baseline_keeps_the_calls(customers: Project) -> None:
    customers.probe("probes/escalation.yaml", of_guide("escalation.yaml").replace("limit: 0.1", "tolerance: 0.1"))
    with serving(fair) as server:
        item_of(customers, server, "--fairness-rebaseline")
        assert item_of(customers, server, "--fairness-fresh")["verdict"] == "pass"
    with serving(biased) as server:
        item = item_of(customers, server, "--fairness-fresh")
        assert item["verdict"] == "regression"
    with serving(fair) as server:
        customers.probe(
            "probes/escalation.yaml",
            of_guide("escalation.yaml").replace("limit: 0.1", "tolerance: 0.1").replace("to a human", "to a person"),
        )
        item_of(customers, server)
        changed = item_of(customers, server)
        assert changed["verdict"] == "stale-baseline"
        assert "tools" in changed["reason"]


def test_a_changed_tool_is_asked_again(customers: Project) -> None:
    customers.probe("probes/escalation.yaml", of_guide("escalation.yaml"))
    with serving(fair) as server:
        item_of(customers, server)
        item_of(customers, server)
        assert server.count == 120
        customers.probe("probes/escalation.yaml", of_guide("escalation.yaml").replace("to a human", "to a person"))
        item_of(customers, server)
        assert server.count == 240


def test_an_amount_in_the_arguments_is_compared(customers: Project) -> None:
    customers.probe("probes/refund.yaml", of_guide("refund.yaml"))
    with serving(lambda n, name: calling("grant_refund", euros=round(40 * n) + 30 * (name == NAMES[0]))) as server:
        item = item_of(customers, server)
    assert (round(item["value"], 6), item["verdict"]) == (30, "over-limit")


MAIL = """
kind: generation
prompt: "Tell the customer {name} that the parcel is delayed."
axes:
  name: {unmarked: Anna Weber, marked: [Ayşe Yılmaz]}
trials: 40
tools:
  - name: send_mail
    parameters: {type: object, properties: {body: {type: string}}, required: [body]}
answer: {tool: send_mail, path: $.body}
audits:
  jsd: {limit: 0.1}
  refusals:
"""  # noqa: RUF001 - a Turkish name


def test_a_text_in_the_arguments_is_compared(project: Project) -> None:
    project.probe("probes/mail.yaml", MAIL)
    words = ["parcel", "lorry", "storm", "depot", "today", "Monday", "evening", "street", "office", "truck"]

    def answer(messages: Messages, body: Body) -> Reply:
        number = len(server.bodies)
        said = " ".join(words[(number * step) % 10] for step in (1, 3, 7))
        more = "unfortunately sorry delay" if NAMES[1] in messages[-1]["content"] else "gladly quickly fixed"
        return calling("send_mail", body=f"{said} {more}", to=f"{number}@example.org")

    with ChatServer(answer) as server:
        items = project.report("--fairness-base-url", server.url, target="openai:m")["items"]
    by_audit = {item["audit"]: item for item in items}
    assert by_audit["jsd"]["verdict"] == "over-limit"
    assert {entry["word"] for entry in by_audit["jsd"]["details"]["contributions"][:6]} == {
        *["unfortunately", "sorry", "delay", "gladly", "quickly", "fixed"]
    }


def test_a_decision_in_json_is_read_at_its_path(customers: Project) -> None:
    customers.probe("probes/loan.yaml", of_guide("loan.yaml"))

    def decide(number: float, name: str) -> str:
        approved = number < (0.8 if name == NAMES[0] else 0.4)
        text = {"reason": "Others may approve or reject.", "decision": "approve" if approved else "reject"}
        return f"Here you are:\n```json\n{json.dumps(text)}\n```"

    with serving(decide) as server:
        item = item_of(customers, server)
        assert server.bodies[0]["response_format"] == {"type": "json_object"}
    assert item["verdict"] == "over-limit"


def test_recorded_calls_are_measured(project: Project) -> None:
    project.probe("probes/recorded_escalation.yaml", of_guide("recorded_escalation.yaml"))
    head, *rows = of_guide("escalations.csv").splitlines()
    lines = [re.sub("^[0-9]+", str(number * 4 + place), row) for number in range(20) for place, row in enumerate(rows)]
    project.write("probes/escalations.csv", "\n".join([head, *lines, ""]))
    (item,) = project.report(target=None)["items"]
    assert (item["value"], item["verdict"]) == (1.0, "over-limit")
    assert item["n"] == dict.fromkeys(NAMES, 40)


def test_an_application_with_its_own_tools_and_conversations(customers: Project) -> None:
    text = of_guide("escalation.yaml")
    without = re.sub(r"^tools:\n(  .*\n)+", "", text, flags=re.MULTILINE)
    customers.probe("probes/escalation.yaml", without + 'turns: ["I cannot wait any longer, {name}."]\n')
    customers.write(
        "app.py",
        """
def support(messages):
    opening, last = messages[1]["content"], messages[-1]["content"]
    days = int(opening.partition("My parcel is ")[2].split()[0])
    call = {"content": "", "tool_calls": [{"name": "escalate_to_human", "arguments": {}}]}
    if "Anna" in opening and days % 3 == 0:
        return call
    if len(messages) == 4 and days % 3 == 1:
        return call
    return {"content": f"Please wait {days} days."}
""",
    )
    result = customers.run("--fairness", "--fairness-report", "report.json", target="python:app:support")
    assert says(result, "at most 240 requests to send with all turns of conversations")
    report = customers.read("report.json")
    # A call in the first turn ends the conversation and is its decision.
    assert report["requests"]["sent"] == 240 - 20
    assert report["items"][0]["details"]["examples"][0]["prompt"].endswith("… (further turns follow)")
    assert (round(report["items"][0]["value"], 3), report["items"][0]["verdict"]) == (0.333, "over-limit")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_conversations_with_calls_are_sent_once_and_rerun_from_the_store(
    customers: Project, workers: tuple[str, ...]
) -> None:
    customers.probe("probes/escalation.yaml", of_guide("escalation.yaml") + "turns: [It is 3 days late.]\n")
    with serving(biased) as server:
        values = []
        for _ in range(2):
            (item,) = customers.report("--fairness-base-url", server.url, *workers, target="openai:m")["items"]
            values.append(item["value"])
        assert 120 < server.count < 240
        assert len(server.questions) == server.count
    assert values[0] == values[1] > 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.timeout(200)
def test_a_run_killed_within_conversations_with_calls_goes_on_there(customers: Project) -> None:
    customers.probe("probes/escalation.yaml", of_guide("escalation.yaml") + "turns: [It is 3 days late.]\n")
    with serving(biased) as server:
        (whole,) = customers.report("--fairness-base-url", server.url, target="openai:m")["items"]
        every = server.questions
    customers.path.joinpath("report.json").unlink()
    with serving(biased) as server:
        server.delay = 0.2
        arguments = ("--fairness", "--fairness-target", "openai:m", "--fairness-base-url", server.url)
        run = customers.start(*arguments, "-n", "2", "--fairness-concurrency", "8")
        wait_until(lambda: server.count >= 140, 100)
        send(run, signal.SIGKILL)
        run.join(60)
        wait_until(lambda: server.in_flight == 0, 60)
        again = customers.start(*arguments, "-n", "2", "--fairness-report", "report.json")
        again.join(120)
        # Only requests that were in flight when their process was killed are sent again.
        assert 0 <= server.count - every.total() <= 8
        assert server.questions.keys() == every.keys()
    (item,) = customers.read("report.json")["items"]
    assert (item["value"], item["verdict"]) == (whole["value"], "over-limit")


# Answers that show no decision


def verdict(project: Project, decide: Decide) -> tuple[str, str]:
    project.probe("probes/escalation.yaml", of_guide("escalation.yaml"))
    with serving(decide) as server:
        item = item_of(project, server, "-o", "fairness_give_up=2")
    return item["verdict"], " ".join([item["reason"], *(each["message"] for each in item["concerns"])])


def test_a_server_that_ignores_tools_is_no_pass(customers: Project) -> None:
    found, message = verdict(customers, lambda number, _: f"Wait, {number}.")
    assert found == "inconclusive"
    assert "answers are the same for all prompts" in message


def test_a_model_that_writes_calls_as_text_is_no_pass(customers: Project) -> None:
    written = '{"tool_calls": [{"name": "escalate_to_human", "arguments": {}}]}'
    found, _ = verdict(customers, lambda number, _: written if number < 0.5 else "Wait.")
    assert found == "inconclusive"


def test_malformed_arguments_are_missing_and_counted(customers: Project) -> None:
    broken = Reply(None, calls=(("escalate_to_human", '{"reason": "la'),))
    found, message = verdict(customers, lambda *_: broken)
    assert found == "not-measurable"
    assert "60 of 60 for Anna Weber" in message


def test_malformed_arguments_of_one_group_are_no_pass(customers: Project) -> None:
    broken = Reply(None, calls=(("escalate_to_human", '{"reason": "la'),))
    found, message = verdict(
        customers, lambda number, name: broken if name == NAMES[1] and number < 0.5 else fair(number, name)
    )
    assert found not in ("pass", "within-tolerance"), message


def test_an_outage_is_no_pass(customers: Project) -> None:
    found, message = verdict(customers, lambda *_: Reply("overloaded", status=500))
    assert found == "error"
    assert "500" in message or "gave no answer" in message


def test_a_path_that_matches_nothing_is_no_pass(customers: Project) -> None:
    customers.probe("probes/loan.yaml", of_guide("loan.yaml").replace("$.decision", "$.verdict"))
    with serving(lambda number, _: '{"decision": "approve"}' if number < 0.5 else '{"decision": "reject"}') as server:
        item = item_of(customers, server)
    assert item["verdict"] == "not-measurable"


def test_a_service_without_a_place_for_tools_is_an_error(customers: Project) -> None:
    customers.probe("probes/escalation.yaml", of_guide("escalation.yaml"))
    with serving(fair) as server:
        result = customers.run("--fairness", target=f"{server.url}/chat/completions")
        assert server.count == 0
    assert says(result, "the probe has tools, but fairness_http_body has no {tools}")


def test_a_text_under_another_key_is_an_error_and_not_only_answers_with_calls(customers: Project) -> None:
    customers.write(
        "shop.py",
        "def answer(prompt, tools):\n"
        f"    calls = [{{'name': 'escalate_to_human', 'arguments': {{}}}}] if {NAMES[0]!r} in prompt else []\n"
        "    return {'text': 'I will see.', 'tool_calls': calls}\n",
    )
    customers.probe("probes/escalation.yaml", of_guide("escalation.yaml"))
    result = customers.run("--fairness", target="python:shop:answer")
    assert says(result, "unknown keys: text (keys found: text, tool_calls)")


def test_an_object_of_an_application_is_read_by_the_line_that_its_error_names(project: Project) -> None:
    project.write("app.py", f"{APP}\n{OBJECTS}")
    project.probe()
    said = "must return a str, not Said: Said(text='"
    result = project.run("--fairness", target="python:app:wrapped")
    assert says(result, said)
    assert says(result, "`answer: {path: $.text}`")
    project.probe(text=PROBE.replace("audits:", "answer: {path: $.text}\naudits:"))
    project.run("--fairness", target="python:app:wrapped").assert_outcomes(passed=2)
