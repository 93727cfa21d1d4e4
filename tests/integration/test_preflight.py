"""The first request to a target is sent alone, so that a wrong key or model name fails once, and at once."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.projects import PROBE, Project, says
from tests.support.servers import ChatServer, Reply, fair_answer

TWO = PROBE.replace("would you recommend", "might you give")
SETTINGS = "--fairness-base-url or base_url=… of the target and OPENAI_API_KEY"
REJECTED = "no such model. The first requests were rejected, so no more were sent. Check the model's name, "
WITH_KEY = f"{REJECTED}{SETTINGS}; run again."
WITHOUT_KEY = f"{REJECTED}{SETTINGS} (no key is set); run again."
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])


def no_model(status: int, text: str = "no such model") -> ChatServer:
    return ChatServer(lambda *_: Reply(text, status=status), delay=0.05)


@pytest.mark.parametrize(
    ("status", "message", "sent", "workers"),
    [
        (401, f"rejects the key (HTTP 401). Check {SETTINGS}", 1, ()),
        (401, f"rejects the key (HTTP 401). Check {SETTINGS}", 1, ("-n", "2")),
        (403, f"rejects the request with this key (HTTP 403). Check {SETTINGS}", 1, ()),
        (404, "knows no model 'tiny', or is not a chat endpoint (HTTP 404: no such model)", 1, ()),
        (400, WITH_KEY, 2, ()),
        (400, WITH_KEY, 2, ("-n", "2")),
        (422, WITH_KEY, 2, ()),
    ],
)
def test_a_rejecting_server_is_asked_once_or_twice(
    project: Project,
    status: int,
    message: str,
    sent: int,
    workers: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    project.probe("probes/a.yaml")
    project.probe("probes/b.yaml", TWO)
    with no_model(status) as server:
        result = project.run("--fairness", "--fairness-base-url", server.url, *workers, target="openai:tiny")
    result.assert_outcomes(errors=4)
    assert says(result, message)
    assert server.count == sent
    assert server.most_in_flight == 1


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "asks for an API key (HTTP 401), and none is set. Set the environment variable OPENAI_API_KEY."),
        (403, "asks for an API key (HTTP 403), and none is set. Set the environment variable OPENAI_API_KEY."),
        (400, WITHOUT_KEY),
    ],
)
def test_a_missing_key_is_not_called_a_wrong_key(project: Project, status: int, message: str) -> None:
    project.probe()
    with no_model(status) as server:
        result = project.run("--fairness", "--fairness-base-url", server.url, target="openai:tiny")
    assert says(result, message)
    assert "rejects the" not in result.stdout.str()


def test_the_second_request_has_another_prompt_than_the_first(project: Project) -> None:
    project.probe("probes/a.yaml")
    project.probe("probes/b.yaml", TWO)
    with no_model(400) as server:
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:tiny")
    first, second = (json.dumps(body["messages"]) for body in server.bodies)
    assert "would you recommend" in first
    assert "might you give" in second


def test_one_rejected_prompt_stops_nothing(project: Project) -> None:
    project.probe()

    def answer(messages: list[dict[str, str]], body: dict[str, object]) -> str | Reply:
        return fair_answer(messages, body) if "Alex" not in messages[-1]["content"] else Reply("filtered", status=400)

    with ChatServer(answer, delay=0.05) as server:
        arguments = ("--fairness-base-url", server.url)
        items = project.report(*arguments, target="openai:tiny")["items"]
        assert server.count == 30, "the last request was answered"
        assert any("filtered" in item["reason"] for item in items)
        project.run("--fairness", *arguments, target="openai:tiny")
        assert server.count == 30 + 10, (
            "the rejected ones are sent again, as recorded answers show that the target works"
        )


@WORKERS
def test_the_first_answer_counts_and_is_waited_for_alone(project: Project, workers: tuple[str, ...]) -> None:
    project.probe()
    in_flight: list[int] = []

    def answer(messages: list[dict[str, str]], body: dict[str, object]) -> str:
        in_flight.append(server.in_flight)
        return fair_answer(messages, body)

    with ChatServer(answer, delay=0.2) as server:
        arguments = ("--fairness", "--fairness-base-url", server.url, *workers)
        project.run(*arguments, target="openai:tiny").assert_outcomes(passed=2)
        assert server.count == 30, "nothing is sent twice"
        assert in_flight[0] == 1
        assert max(in_flight) > 2
        project.run(*arguments, target="openai:tiny").assert_outcomes(passed=2)
        assert server.count == 30, "everything was recorded"


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_is_busy_is_asked_as_usual(project: Project, status: int) -> None:
    project.probe()
    with ChatServer(script=[Reply("busy", status=status, headers={"Retry-After": "0.1"})]) as server:
        arguments = ("--fairness", "--fairness-base-url", server.url)
        project.run(*arguments, target="openai:tiny").assert_outcomes(passed=2)
        assert server.count == 31


def test_each_target_has_its_own_first_request(project: Project) -> None:
    project.probe()
    with ChatServer(
        lambda m, b: Reply("no such model", status=400) if b["model"] == "bad" else fair_answer(m, b)
    ) as server:
        result = project.run(
            *("--fairness", "--fairness-base-url", server.url),
            *("--fairness-target", "good=openai:good", "--fairness-target", "bad=openai:bad"),
            target=None,
        )
        result.assert_outcomes(passed=2, errors=2)
        models = [body["model"] for body in server.bodies]
    assert (models.count("good"), models.count("bad")) == (30, 2)
    assert len(re.findall(r"openai:bad: HTTP 400 from", result.stdout.str())) >= 1
