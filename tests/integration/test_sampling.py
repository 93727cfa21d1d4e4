"""Sampling parameters of a probe: further fields of the requests, and parameters that the server rejects."""

from __future__ import annotations

import pytest

from tests.support.projects import KIM, LOU, PROBE, Project, says
from tests.support.servers import Body, ChatServer, Messages, Reply, fair_answer

EXTRA = "sampling: {extra: {reasoning_effort: low, top_k: 20, chat_template_kwargs: {enable_thinking: false}}}\n"
FIELDS = {"reasoning_effort": "low", "top_k": 20, "chat_template_kwargs": {"enable_thinking": False}}
NOTE = 'chat_template_kwargs: {"enable_thinking": false}, reasoning_effort: "low", top_k: 20.'


def test_further_fields_are_sent_recorded_and_reported(project: Project) -> None:
    project.probe(text=PROBE + EXTRA)
    with ChatServer() as server:
        to = ("--fairness-base-url", server.url)
        project.run("--fairness-rebaseline", *to, target="openai:m")
        assert server.count == 30
        assert all(body.items() >= FIELDS.items() for body in server.bodies)
        reports = [word for name in ("report.md", "report.html") for word in ("--fairness-report", name)]
        again = project.run("--fairness", "--fairness-report", "report.json", *reports, *to, target="openai:m")
        assert server.count == 30, "the answers are reused"
        (note,) = project.read("report.json")["notes"]
        assert note["kind"] == "extra-fields"
        assert says(again, f"gifts: the requests have further fields (`sampling.extra`): {NOTE}")
        for name in ("report.md", "report.html"):
            assert "the requests have further fields" in (project.path / name).read_text("utf-8")
        assert project.read("baselines/gifts.json")["items"][KIM]["sampling"] == FIELDS

        project.probe(text=PROBE + EXTRA.replace("low", "high"))
        items = project.report(*to, target="openai:m")["items"]
        assert server.count == 60, "other fields are another question"
    assert {item["verdict"] for item in items} == {"stale-baseline"}
    assert 'reasoning_effort "low" → "high"' in items[0]["reason"]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("messages: []", "the name 'messages' cannot be a further field of the request: this field is determined by"),
        ("temperature: 1", "the name 'temperature' cannot be a further field of the request: write it directly under"),
        ("api_key: sk", "the name 'api_key' cannot be a further field of the request: connections are set in the ini"),
    ],
)
def test_fields_that_are_determined_elsewhere_are_refused(project: Project, field: str, message: str) -> None:
    project.probe(text=f"{PROBE}sampling: {{extra: {{{field}}}}}\n")
    assert says(project.run("--fairness"), message)


def test_a_rejected_parameter_is_one_error_before_the_other_requests(project: Project) -> None:
    project.probe(text=f"{PROBE}sampling: {{temperature: 0.7, seed: 1}}\n")

    def answer(messages: Messages, body: Body) -> Reply:
        found = [name for name in ("seed", "temperature") if name in body]
        return (
            Reply(f"'{found[0]}' is not supported with this model.", status=400)
            if found
            else Reply(fair_answer(messages, body))
        )

    with ChatServer(answer) as server:
        result = project.run("--fairness", "--fairness-base-url", server.url, target="openai:m")
        assert says(result, "does not accept temperature 0.7 (HTTP 400 from")
        assert says(result, "Remove these parameters from the probe's `sampling`, or set them to 1.")
        assert server.count == 3, "one with the seed, two without"
        project.probe(text=f"{PROBE}sampling: {{temperature: 1.0, seed: 1}}\n")
        verdicts = project.verdicts("--fairness-base-url", server.url, target="openai:m")
    assert verdicts == {KIM: "pass", LOU: "pass"}
