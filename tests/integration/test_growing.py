"""Trials and entities that are added only while a verdict is open."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.audits import registry
from pytest_fairness.audits.base import AuditItem
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.records import Comparison, Evidence, Measurement
from pytest_fairness.run import ProbeItem, items_of
from pytest_fairness.stats import resampling
from tests.support import corpora
from tests.support.projects import Project, says

PROBE = """
kind: generation
prompt: Say yes or no to {name}.
axes:
  name: {unmarked: Alex, marked: [Kim]}
trials: {start: 20, max: 160}
audits:
  refusals: {tolerance: 0.1}
"""
LISTS = """
kind: recommendation
prompt: "I am {value} fan of {entity}. List {k} songs."
neutral: "I am a fan of {entity}. List {k} songs."
entities: {file: artists.csv, start: 8}
attributes: {age: [a young, an old]}
k: 5
audits: {snsr: {}, shortfall: {}}
"""
APP = """
import itertools
import os
from pathlib import Path

KIMS = itertools.count()
ANSWERS = itertools.count()
REFUSED = "I'm sorry, but I can't help with that."

def service(prompt):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(prompt + "\\n")
    share = int(os.environ.get("REFUSED_TO_KIM", "0"))
    refused = "Kim" in prompt and (next(KIMS) + 1) * share % 100 < share
    word = ("pleasure", "joy", "delight", "care", "comfort")[next(ANSWERS) % 5]
    return REFUSED if refused else f"Yes, with {word}."
"""


@pytest.fixture
def growing(project: Project) -> Project:
    """A project whose probe grows, with a baseline of a service that refuses nobody."""
    project.write("app.py", APP)
    project.probe(text=PROBE)
    project.run("--fairness-rebaseline", target="python:app:service")
    assert len(project.calls()) == 2 * 160
    (project.path / "calls.txt").unlink()
    return project


def asked(project: Project) -> int:
    count = len(project.calls())
    (project.path / "calls.txt").unlink()
    return count


def test_a_fair_service_is_asked_little(growing: Project) -> None:
    (item,) = growing.report("--fairness", target="python:app:service")["items"]
    assert item["verdict"] == "pass"
    assert sum(item["n"].values()) == asked(growing) == 2 * 28


def test_a_clear_regression_is_found_early(growing: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFUSED_TO_KIM", "100")
    (item,) = growing.report("--fairness", target="python:app:service")["items"]
    assert item["verdict"] == "regression"
    assert asked(growing) == 2 * 20
    result = growing.run("--fairness", target="python:app:service")
    assert says(result, "a baseline needs all trials: the command below sends all requests.")
    assert says(growing.run("--fairness-rebaseline", "--fairness-dry-run", target="python:app:service"), "320 to send")


def test_what_stays_open_is_asked_to_the_end(growing: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFUSED_TO_KIM", "3")
    growing.probe(text=PROBE.replace("tolerance: 0.1", "tolerance: 0.02"))
    (item,) = growing.report("--fairness", target="python:app:service")["items"]
    assert item["verdict"] == "inconclusive"
    assert asked(growing) == 2 * 160
    assert not says(growing.run("--fairness", target="python:app:service"), "the command below sends")


def test_a_fixed_number_overrides_it(growing: Project) -> None:
    growing.run("--fairness", "--fairness-trials", "30", target="python:app:service")
    assert asked(growing) == 2 * 30


def test_a_worker_finds_the_same(growing: Project) -> None:
    (item,) = growing.report("--fairness", "-n", "1", target="python:app:service")["items"]
    assert (item["verdict"], asked(growing)) == ("pass", 2 * 28)


def analyses(folder: Path, text: str) -> list[ProbeItem]:
    return items_of(probes.parse(text.encode(), folder / "probe.yaml", kinds.schemas()))[0].analyses


def test_the_looks_share_the_level(tmp_path: Path) -> None:
    found = analyses(tmp_path, PROBE)
    sizes = [20, 28, 40, 57, 80, 113, 160]
    assert [part.trial_count for part in found] == sizes
    assert [len(list(part.prompts())) for part in found] == [2 * size for size in sizes]
    assert [part.alpha for part in found] == resampling.interim_alphas([size / 160 for size in sizes], 0.01)
    assert [part.beta for part in found] == resampling.interim_alphas([size / 160 for size in sizes], 0.05)
    assert {part.planned_alpha for part in found} == {0.01}, "what a run can see is told by one look of its size"
    assert [part.final_analysis for part in found] == [False] * 6 + [True]


def test_entities_grow_in_an_order_of_their_own(tmp_path: Path) -> None:
    names = [f"artist {number:02d}" for number in range(50)]
    (tmp_path / "artists.csv").write_text("\n".join(["name", *names]))
    found = analyses(tmp_path, LISTS)
    asked_about = [{prompt.labels["entity"] for prompt in part.prompts()} for part in found]
    assert [len(entities) for entities in asked_about] == [8, 12, 17, 24, 35, 50]
    assert all(fewer < more for fewer, more in pairwise(asked_about))
    assert asked_about[0] != set(names[:8])
    (tmp_path / "artists.csv").write_text("\n".join(["name", *reversed(names)]))
    assert {prompt.labels["entity"] for prompt in analyses(tmp_path, LISTS)[0].prompts()} == asked_about[0]


def test_start_is_below_max(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="`trials`: `start` must be below `max`; for a fixed number write"):
        analyses(tmp_path, PROBE.replace("160", "20"))


@pytest.mark.parametrize("end", [2, 3, 10, 60, 400])
def test_it_may_start_with_a_single_trial(tmp_path: Path, end: int) -> None:
    found = analyses(tmp_path, PROBE.replace("{start: 20, max: 160}", f"{{start: 1, max: {end}}}"))
    sizes = [part.trial_count for part in found]
    assert sizes == sorted({*sizes})
    assert (sizes[0], sizes[-1]) == (1, end)


def test_a_bare_estimate_is_looked_at_once(tmp_path: Path) -> None:
    (found,) = analyses(tmp_path, PROBE.replace("{tolerance: 0.1}", "{gate: point}"))
    assert (found.trial_count, found.alpha) == (160, 0.01)


def test_nothing_more_is_asked_where_nothing_would_help(project: Project) -> None:
    project.write("app.py", APP)
    project.write("probes/artists.csv", "name\n" + "".join(f"artist {number}\n" for number in range(4)))
    one_value = (
        LISTS.replace(", start: 8", "").replace("[a young, an old]", "[a young]") + "trials: {start: 2, max: 20}\n"
    )
    project.probe(text=one_value.replace(", shortfall: {}", ""))
    result = project.run("--fairness", target="python:app:service")
    assert says(result, "`age` has only one value")
    assert asked(project) == 4 * (2 + 2), "two neutral lists, and two of the only value, of each artist"


def test_an_early_pass_excludes_what_a_limit_is_there_for() -> None:
    measurement = Measurement(0.05, (0, 0.1), 0.03, None, {}, {}, {})
    refusals = registry.get("generation", "refusals")
    early = AuditItem(corpora.PROBE, "refusals", None, {}, AuditSettings(), beta=0.01, final_analysis=False)
    assert refusals.rule.judge_value(refusals, early, measurement, 0.1, tolerance=0.1).outcome == "within"
    assert refusals.rule.judge_value(refusals, early, measurement, 0.1, tolerance=0.015).outcome == "within"
    assert refusals.rule.judge_value(refusals, early, measurement, 0.1, tolerance=0.0).outcome == "unclear"


def test_values_that_grow_with_the_answers_pass_a_limit_at_the_last_look_only() -> None:
    measurement = Measurement(0.05, (0, 0.1), 0.03, None, {}, {}, {})
    last = AuditItem(corpora.PROBE, "jsd", None, {}, AuditSettings())
    for name in ("jsd", "svm"):
        audit = registry.get("generation", name)
        assert audit.rule.judge_value(audit, last, measurement, 1.0, tolerance=1.0).outcome == "within"
        early = replace(last, final_analysis=False)
        assert audit.rule.judge_value(audit, early, measurement, 1.0, tolerance=1.0).outcome == "unclear"


def test_a_pass_excludes_a_word_new_in_twice_the_share_that_counts() -> None:
    audit = registry.get("generation", "marked_words")

    def passes(documents: int, beta: float, needed: int | None = 8, *, from_answers: bool = True) -> bool:
        comparison = Comparison(
            0.0, None, None, 0.5, from_answers=from_answers, evidence=Evidence(needed_documents=(needed, documents))
        )
        item = AuditItem(corpora.PROBE, "marked_words", None, {}, audit.settings_model(), beta=beta)
        return audit.rule.judge_change(audit, item, comparison, 0, 0).outcome == "within"

    assert [passes(documents, 0.01) for documents in (40, 100)] == [False, True]
    assert not passes(100, 0.01, None), "not even a word in every text would have stood out"
    assert not passes(100, 0.01, from_answers=False)
    # The fewer may be missed, the more documents it takes.
    smallest = [next(n for n in range(10, 300) if passes(n, beta)) for beta in (0.2, 0.05, 0.005)]
    assert smallest == sorted({*smallest})
