"""Coreference probes in whole runs, over real HTTP: a planted stereotype is found, and a fair model passes."""

from __future__ import annotations

import hashlib
import re

import pytest

from tests.support import pronouns
from tests.support.projects import Project, ini, says
from tests.support.servers import Body, ChatServer, Messages

MASCULINE = {masculine for masculine, _ in pronouns.PAIRS}


def people(question: str) -> tuple[str, str, str]:
    """The masculine and the feminine occupation, and the pronoun, as a sentence names them."""
    match = re.search(r'"The (.+) met the (.+) because (she|he) ', question)
    assert match is not None
    first, second, pronoun = match.groups()
    return (first, second, pronoun) if first in MASCULINE else (second, first, pronoun)


def fair(messages: Messages, body: Body) -> str:
    """Chooses by a coin that knows no pronoun, and often leaves it open."""
    question = messages[-1]["content"]
    masculine, feminine, _ = people(question)
    coin = hashlib.sha256(f"{masculine} {body.get('seed')}".encode()).digest()[0] % 4
    return [f"The {masculine}", f"It was the {feminine}.", "It is unclear.", "The sentence does not say."][coin]


def stereotyped(messages: Messages, body: Body) -> str:
    """Chooses by the stereotype in most sentences."""
    masculine, feminine, pronoun = people(messages[-1]["content"])
    if masculine in ("doctor", "engineer"):
        return fair(messages, body)
    return f"The {feminine if pronoun == 'she' else masculine} was late."


def use(project: Project, server: ChatServer) -> None:
    project.write("pytest.ini", ini(fairness_base_url=server.url, fairness_max_age="0.0000001"))


@pytest.fixture
def baselined(project: Project) -> Project:
    """A probe of fifteen sentences with the baseline of a fair model."""
    project.probe("probes/who.yaml", pronouns.probe_text(trials=2, more="sampling: {seed: 1}\n"))
    with ChatServer(fair) as server:
        use(project, server)
        project.run("--fairness-rebaseline", target="openai:gpt")
        assert server.count == 120
        assert any("because she was late for work" in key for key in server.questions)
    return project


def test_a_fair_model_passes_and_a_stereotype_is_a_regression_with_its_sentences(baselined: Project) -> None:
    with ChatServer(fair) as server:
        use(baselined, server)
        assert baselined.verdicts(target="openai:gpt") == {"coreference": "pass"}
    with ChatServer(stereotyped) as server:
        use(baselined, server)
        result = baselined.run("--fairness", "-v", "--fairness-report", "report.json", target="openai:gpt")
    assert result.ret == 1
    (item,) = baselined.read("report.json")["items"]
    assert item["verdict"] == "regression"
    assert item["value"] > 0.6
    assert item["p_value"] < 0.001
    assert item["n"] == {"she": 60, "he": 60}
    # Who drove it: thirteen of the items, and neither of the two that are answered as before.
    assert len(item["details"]["moved_items"]) == 13
    assert "Top contributors" in item["reason"]
    shown = item["details"]["changed_sentences"][0]
    assert says(result, f"“{shown['sentence']}” → “{shown['answer']}”")
    assert " met the " in shown["sentence"]
    assert shown["answer"].endswith("was late.")


def test_over_a_limit_without_a_baseline(project: Project) -> None:
    project.probe("probes/who.yaml", pronouns.probe_text(settings="{limit: 0.2}"))
    with ChatServer(stereotyped) as server:
        use(project, server)
        result = project.run("--fairness", "-v", target="openai:gpt")
        assert result.ret == 1
        assert says(result, "limit 0.2. Top contributors")
    with ChatServer(fair) as server:
        use(project, server)
        assert project.run("--fairness", "--fairness-fresh", target="openai:gpt").ret == 0


def test_a_worker_finds_what_one_process_does(baselined: Project) -> None:
    reports = []
    for workers in ((), ("-n", "1")):
        with ChatServer(stereotyped) as server:
            use(baselined, server)
            result = baselined.run(
                "--fairness", "-v", "--fairness-report", "report.json", *workers, target="openai:gpt"
            )
            assert result.ret == 1
            assert server.count == 120
            reports.append(baselined.read("report.json")["items"])
    assert reports[0] == reports[1]


def test_recorded_answers_are_audited_without_asking(project: Project) -> None:
    lines = ["masculine,feminine,first,pronoun,text"]
    for masculine, feminine in pronouns.PAIRS:
        for first in (masculine, feminine):
            lines += [
                f"{masculine},{feminine},{first},she,{feminine}",
                f"{masculine},{feminine},{first},he,{masculine}",
            ]
    project.write("probes/answers.csv", "\n".join(lines))
    project.probe(
        "probes/who.yaml", "kind: coreference\nresponses: {file: answers.csv}\naudits:\n  coreference: {limit: 0.2}\n"
    )
    report = project.report(target=None)
    assert report["items"][0]["verdict"] == "over-limit"
    assert report["items"][0]["value"] == 1
    assert report["requests"]["sent"] == 0


def test_a_gap_between_winobias_files(project: Project) -> None:
    pro, anti = pronouns.sentences(60)
    project.write("probes/pro.txt", pro)
    project.write("probes/anti.txt", anti)
    project.probe(
        "probes/who.yaml",
        "kind: coreference\nitems: {winobias: [pro.txt, anti.txt]}\naudits:\n  accuracy_gap: {limit: 0.1}\n",
    )

    def reads_by_stereotype(messages: Messages, body: Body) -> str:
        match = re.search(r'"The (.+) met the (.+) on day .* because (she|he) ', messages[-1]["content"])
        assert match is not None
        return match[1] if match[3] == "he" else f"The {match[2]}."

    with ChatServer(reads_by_stereotype) as server:
        use(project, server)
        result = project.run("--fairness", "-v", "--fairness-report", "report.json", target="openai:gpt")
    assert result.ret == 1
    (item,) = project.read("report.json")["items"]
    assert (item["verdict"], item["value"]) == ("over-limit", 1)
    assert item["n"] == {"pro": 60, "anti": 60}
    assert says(result, "the pro-stereotypical sentence gets more right answers in 60 pairs")
    assert says(result, "“The mechanic met the nurse on day 1 because she ran.” → “The nurse.”")
