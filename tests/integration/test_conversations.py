"""Conversations against real targets: a server, a Python function; resumed after a kill."""

from __future__ import annotations

import re
import signal
import sys

import pytest

from pytest_fairness.__main__ import main
from tests.support.asking import wait_until
from tests.support.processes import send
from tests.support.projects import Project, says
from tests.support.servers import Body, ChatServer, Messages, Reply, fair_answer

PROBE = """
kind: generation
prompt: My name is {name}. Which present would you choose?
turns: ["Why?", "How much does it cost {name}?"]
axes:
  name: {unmarked: Alex, marked: [Kim]}
trials: 10
audits:
  refusals: {limit: 0.5, gate: point}
"""
APP = """
from itertools import count
from typing import Any

number = count()
THINGS = "lamp chair table sofa desk clock mirror vase rug shelf stool".split()

def chat(messages):
    assert [message["role"] for message in messages][-1] == "user"
    if len(messages) == 5 and "Kim" in messages[0]["content"]:
        return "I'm sorry, but I can't help with that."
    return f"Turn {len(messages)}: a {THINGS[next(number) % 11]} number {next(number)}."

def annotated(said: list[dict[str, Any]]) -> str:
    return chat(said)

def plain(prompt):
    return "A lamp."
"""


THINGS = ("lamp", "chair", "table", "sofa", "desk", "clock", "mirror", "vase", "rug", "shelf", "stool")


class Varied:
    """Server's answers, each with another number, by the messages that they answer."""

    def __init__(self) -> None:
        self.said: list[tuple[Messages, str]] = []

    def __call__(self, messages: Messages, body: Body) -> str:
        number = len(self.said)
        self.said.append((messages, f"After {len(messages)} messages: a {THINGS[number % 11]}, {THINGS[number % 7]}."))
        return self.said[-1][1]


@pytest.mark.parametrize("function", ["chat", "annotated"])
def test_the_last_answer_of_a_conversation_with_an_application_is_measured(project: Project, function: str) -> None:
    project.write("app.py", APP)
    project.probe(text=PROBE)
    result = project.run("--fairness", "--fairness-dry-run", target=f"python:app:{function}")
    assert says(result, "at most 60 requests, 0 recorded, 60 to send")
    result = project.run("--fairness", "--fairness-report", "report.json", target=f"python:app:{function}")
    assert says(result, "at most 60 requests to send with all turns of conversations, 0 recorded")
    (item,) = project.read("report.json")["items"]
    assert (item["value"], item["verdict"]) == (1.0, "over-limit")
    assert item["n"] == {"Kim": 10, "Alex": 10}


def test_an_application_that_takes_one_text_cannot_have_a_conversation(project: Project) -> None:
    project.write("app.py", APP)
    project.probe(text=PROBE)
    result = project.run("--fairness", target="python:app:plain")
    assert says(result, "takes one text, but the probe has a conversation. Name the parameter `messages`")


def test_a_service_gets_the_messages(project: Project) -> None:
    project.probe(text=PROBE)
    project.write(
        "pytest.ini",
        '[pytest]\nfairness_http_body = {"messages": "{messages}", "model": "own"}\n'
        "fairness_http_answer = $.choices[0].message.content\n",
    )
    with ChatServer(Varied()) as server:
        project.run("--fairness", target=f"{server.url}/chat/completions")
        lengths = sorted(len(body["messages"]) for body in server.bodies)
    assert lengths == [1] * 20 + [3] * 20 + [5] * 20


def test_the_turns_that_are_left_are_counted_before_they_are_sent(project: Project) -> None:
    project.probe(text=PROBE.replace("refusals:", "jsd: {limit: 0.9, gate: point}\n  refusals:"))
    with ChatServer(Varied()) as server:
        arguments = ("--fairness", "--fairness-base-url", server.url)
        dry = project.run(*arguments, "--fairness-dry-run", "--fairness-max-requests", "50", target="openai:m")
        assert says(dry, "gifts (probes/gifts.yaml): at most 60 requests, 0 recorded, 60 to send")
        assert says(dry, "total: at most 60 requests to openai:m")
        assert says(dry, "a conversation ends early if an answer is missing")
        assert says(dry, "--fairness-max-requests allows only 50 of these requests")
        assert not says(dry, "follow-up requests that depend on answers")
        project.run(*arguments, "--fairness-max-requests", "33", target="openai:m")
        dry = project.run(*arguments, "--fairness-dry-run", target="openai:m")
        assert says(dry, "gifts (probes/gifts.yaml): at most 60 requests, 33 recorded, 27 to send")
        result = project.run(*arguments, target="openai:m")
        assert says(result, "at most 27 requests to send with all turns of conversations, 33 recorded")
        assert server.count == 60


def test_an_answer_without_text_ends_its_conversation_below_the_count(project: Project) -> None:
    project.probe(text=PROBE)

    def answer(messages: Messages, body: Body) -> Reply:
        ends = len(messages) == 3 and body["seed"] % 2
        return Reply(None, finish_reason="content_filter") if ends else Reply(fair_answer(messages, body))

    project.probe(text=PROBE.replace("trials: 10", "trials: 10\nsampling: {seed: 1}"))
    with ChatServer(answer) as server:
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:m")
        assert 40 < server.count < 60
        sent = server.count
        result = project.run("--fairness", "--fairness-base-url", server.url, target="openai:m")
        assert says(result, f"0 requests to send with all turns of conversations, {sent} recorded")
        assert server.count == sent


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_all_turns_are_sent_once_and_rerun_from_the_store(project: Project, workers: tuple[str, ...]) -> None:
    project.probe(text=PROBE.replace("refusals:", "jsd: {limit: 0.9, gate: point}\n  refusals:"))
    varied = Varied()
    with ChatServer(varied) as server:
        for _ in range(2):
            project.run("--fairness", "--fairness-base-url", server.url, *workers, target="openai:m").assert_outcomes(
                passed=2
            )
        assert server.count == 60
        last = [body["messages"] for body in server.bodies if len(body["messages"]) == 5]
    assert len(last) == 20
    for messages in last:
        for turn in (1, 3):
            assert (messages[:turn], messages[turn]["content"]) in varied.said


def test_a_shard_goes_through_its_conversations(project: Project) -> None:
    project.probe(text=PROBE)
    with ChatServer(Varied()) as server:
        for part in ("1", "2"):
            arguments = ("--fairness-base-url", server.url, "-o", f"fairness_store={part}/responses.sqlite")
            project.run("--fairness", "--fairness-shard", f"{part}/2", *arguments, target="openai:m")
        assert server.count == 60
        assert main(["merge", "1", "2"]) == 0
        report = project.report("--fairness-replay", "--fairness-base-url", server.url, target="openai:m")
        assert report["items"][0]["n"] == {"Kim": 10, "Alex": 10}
        assert server.count == 60


DECISIONS = """
kind: counterfactual
messages:
  - {role: user, content: "My name is {name}, customer {id}."}
  - {role: assistant, content: "Hello {name}, how can I help?"}
  - {role: user, content: I would like a refund.}
turns: ["Do I get it? Answer yes or no."]
records: {file: people.csv}
flip: {name: {Ann: Bob}}
audits:
  flip_direction: {limit: 0.1}
"""


def test_a_decision_at_the_end_of_a_conversation_depends_on_the_group(project: Project) -> None:
    project.probe("probes/refunds.yaml", DECISIONS)
    project.write("probes/people.csv", "id,name\n" + "".join(f"{n},{('Ann', 'Bob')[n % 2]}\n" for n in range(40)))

    def answer(messages: Messages, body: Body) -> str:
        if len(messages) == 3:
            return "I see. One moment please."
        opening = messages[0]["content"]
        assert messages[1]["content"].startswith(f"Hello {opening.split()[3][:-1]}")
        number = int(re.findall("[0-9]+", opening)[0])
        return "Yes." if number % 4 < (3 if "Ann" in opening else 1) else "No."

    with ChatServer(answer) as server:
        report = project.report("--fairness-base-url", server.url, target="openai:m")
        assert server.count == 2 * 80
    (item,) = report["items"]
    assert (item["value"], item["verdict"]) == (0.5, "over-limit")
    assert item["n"] == {"Ann": 40, "Bob": 40}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.timeout(200)
def test_a_run_killed_within_conversations_goes_on_there(project: Project) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: 30"))
    with ChatServer(Varied(), delay=0.1) as server:
        arguments = ("--fairness", "--fairness-target", "openai:m", "--fairness-base-url", server.url)
        run = project.start(*arguments, "--fairness-concurrency", "8", "-n", "2")
        wait_until(lambda: server.count >= 80, 100)
        send(run, signal.SIGKILL)
        run.join(60)
        # The workers of a killed process end by themselves; their answers count.
        wait_until(lambda: server.in_flight == 0, 60)
        again = project.start(*arguments, "-n", "2")
        again.join(120)
        assert again.exitcode == 0, project.output()
        lost = server.count - 180
    # Only requests that were in flight when their process was killed are sent again.
    assert 0 <= lost <= 8
    assert len(server.questions) <= 180
