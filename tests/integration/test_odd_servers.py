"""Servers that redirect, throttle and answer oddly cost few requests, and end in one clear message or in answers."""

from __future__ import annotations

import itertools

import pytest

from tests.support.projects import PROBE, Project, ini, says
from tests.support.servers import Body, ChatServer, Messages, Reply, fair_answer

HEADERS = ("inf", "-5", "Fri, 31 Dec 2199 23:59:59 GMT", "99999999999", "Mon, 01 Jan 1900 00:00:00 GMT", "soon", "")
NOT_JSON = {
    "events": Reply(raw=b'data: {"choices": [{"delta": {"content": "a', headers={"Content-Type": "text/event-stream"}),
    "utf-8": Reply(raw=b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "page": Reply(raw=b"<html>welcome</html>", headers={"Content-Type": "text/html"}),
}


def test_odd_demands_to_wait_in_a_quarter_of_the_answers_do_not_end_the_run(project: Project) -> None:
    number = itertools.count()

    def answer(messages: Messages, body: Body) -> str | Reply:
        place = next(number)
        if place % 4 == 1:
            return Reply("busy", status=429, headers={"Retry-After": HEADERS[place // 4 % len(HEADERS)]})
        return fair_answer(messages, body)

    project.probe()
    with ChatServer(answer) as server:
        report = project.report("--fairness-base-url", server.url, target="openai:tiny")
    assert report["summary"]["errors"] == 0
    assert report["requests"]["failed"] == 0
    assert {sum(item["n"].values()) for item in report["items"]} == {20}


def test_a_redirect_loop_costs_three_hops_a_request(project: Project) -> None:
    loop = Reply(raw=b"", status=307, headers={"Location": "/chat/completions"})
    project.probe()
    with ChatServer(lambda *_: loop) as server:
        result = project.run("--fairness", "--fairness-base-url", server.url, target="openai:tiny")
        result.assert_outcomes(errors=2)
        assert len(server.bodies) <= 3 * 30
    assert says(result, "redirects in a loop")


@pytest.mark.parametrize("kind", ["openai:tiny", "http"])
@pytest.mark.parametrize("reply", NOT_JSON.values(), ids=list(NOT_JSON))
def test_what_is_not_json_is_one_error_after_a_few_requests(project: Project, kind: str, reply: Reply) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: 60"))
    project.write("pytest.ini", ini(fairness_http_body='{"messages": "{messages}"}'))
    with ChatServer(lambda *_: reply) as server:
        target = f"{server.url}/chat/completions" if kind == "http" else kind
        base = () if kind == "http" else ("--fairness-base-url", server.url)
        result = project.run("--fairness", "--fairness-concurrency", "4", *base, target=target)
        result.assert_outcomes(errors=2)
        assert len(server.bodies) <= 8 + 4
    assert says(result, "stream of events" if (kind, reply) == ("http", NOT_JSON["events"]) else " is not ")
