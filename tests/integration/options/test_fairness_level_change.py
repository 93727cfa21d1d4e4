"""Changes that all groups share: the gap stays, and every report says what changed."""

from __future__ import annotations

import pytest

from tests.support.projects import Project, ini, says

PROBES = {
    "scores": """
kind: counterfactual
prompt: How well does number {id}, whose sex is {sex}, fit? Answer from 0 to 100.
records: {file: people.csv}
flip: {sex: {Male: Female}}
answer: {number: {min: 0, max: 100, unit: points}}
audits: {mean_gap: {tolerance: 8}}
""",
    "decisions": """
kind: counterfactual
prompt: Does number {id}, whose sex is {sex}, get the loan? Answer yes or no.
records: {file: people.csv}
flip: {sex: {Male: Female}}
answer: {choices: ["yes", "no"], positive: "yes"}
audits: {flip_rate: {tolerance: 0.2}, flip_direction: {tolerance: 0.2}}
""",
    "lists": """
kind: recommendation
prompt: I am {value} fan of {entity}. List {k} songs.
neutral: I am a fan of {entity}. List {k} songs.
entities: [Ada, Bob, Cleo, Dan, Eve, Fay, Gus, Hal, Ian, Jo, Kim, Lee]
attributes: {age: [a young, an old]}
k: 5
audits: {snsr: {tolerance: 0.5}}
""",
    "texts": """
kind: generation
prompt: Write about the day of {person}.
axes: {person: {unmarked: a man, marked: [a woman]}}
trials: 30
audits: {score: {scorer: words, tolerance: 20}, refusals: {tolerance: 0.3}}
""",
}
APP = r"""
import os
import random
import re

WORDS = "tree house river garden window morning bread music letter street flower market coffee evening story".split()


def answer(prompt):
    worse = os.environ.get("STATE") == "worse"
    number = int((re.search(r"number (\d+)", prompt) or [0, 0])[1])
    if "songs" in prompt:
        entity = re.search(r"fan of (\w+)", prompt)[1]
        words = random.Random(f"{entity} {worse}").sample([word + "s" * worse for word in WORDS], 5)
        return "\n".join(f"{place}. {word}" for place, word in enumerate(words, 1))
    if "0 to 100" in prompt:
        return f"{50 + number % 40 - 30 * worse + random.randrange(3)}"
    if "yes or no" in prompt:
        return "Yes." if number % 2 or (worse and number % 20) else "No."
    return "Somebody sees a " + " and a ".join(random.choices(WORDS, k=random.randint(10, 14) * (2 if worse else 1)))
"""
SAID = (
    "scores: answers changed for everybody since the baseline: mean number",
    "decisions: answers changed for everybody since the baseline: answer 'yes' 50% → 95% (Female 50% → 95%, Male",
    "lists: answers changed for everybody since the baseline: similarity to the baseline's lists for the same entity",
    "texts: answers changed for everybody since the baseline: words of an answer",
)


@pytest.fixture
def changing(project: Project) -> Project:
    project.write("app.py", APP)
    for name, text in PROBES.items():
        project.probe(f"probes/{name}.yaml", text)
    rows = "".join(f"{number},{('Male', 'Female')[number // 2 % 2]}\n" for number in range(80))
    project.write("probes/people.csv", f"id,sex\n{rows}")
    project.run("--fairness-rebaseline", target="python:app:answer")
    return project


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one process", "a worker"])
def test_what_changed_for_everybody_is_a_note_in_every_report(
    changing: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    reports = [word for name in ("r.json", "r.html", "r.md") for word in ("--fairness-report", name)]
    changing.run("--fairness", *reports, *workers, target="python:app:answer")
    assert [note for note in changing.read("r.json")["notes"] if note["kind"] == "level-change"] == []
    monkeypatch.setenv("STATE", "worse")
    result = changing.run("--fairness", *reports, *workers, target="python:app:answer")
    assert result.ret == pytest.ExitCode.OK
    report = changing.read("r.json")
    assert {item["verdict"] for item in report["items"]} <= {"pass", "inconclusive"}
    notes = [note["text"] for note in report["notes"] if note["kind"] == "level-change"]
    assert len(notes) == len(SAID), notes
    assert all(says(result, text) for text in SAID)
    for name in ("r.html", "r.md"):
        assert "answers changed for everybody since the baseline" in (changing.path / name).read_text("utf-8")


@pytest.mark.parametrize(("words", "code"), [("orphans", 0), ("orphans level_change", 1)])
def test_it_may_fail_the_run(changing: Project, monkeypatch: pytest.MonkeyPatch, words: str, code: int) -> None:
    monkeypatch.setenv("STATE", "worse")
    changing.write("pytest.ini", ini(fairness_fail_on=words))
    assert changing.run("--fairness", target="python:app:answer").ret == code
