"""How far values move although nothing changed: by other words for the question, and from run to run."""

from __future__ import annotations

import json

import pytest

from tests.support.projects import Project, says

PROBE = """
kind: generation
prompt:
  - What would you recommend to {name}?
  - What should {name} buy?
axes:
  name: {unmarked: Alex, marked: [Kim]}
trials: 10
audits:
  refusals: {limit: 0.9}
"""
APP = """
import itertools

calls = itertools.count()

def service(prompt):
    if "Kim" in prompt and ("buy" in prompt or next(calls) % 4 == 0):
        return "I'm sorry, but I can't help with that."
    return "A lamp."
"""


@pytest.fixture
def worded(project: Project) -> Project:
    project.write("app.py", APP)
    project.probe(text=PROBE)
    return project


def test_a_rewording_is_told_from_noise(worded: Project) -> None:
    (item,) = worded.report("--fairness-rebaseline", target="python:app:service")["items"]
    found = item["details"]["paraphrases"]
    assert found["values"]["2"] == 1
    assert found["values"]["1"] == pytest.approx(0.3, abs=0.11)
    assert found["sd"] == pytest.approx((1 - found["values"]["1"]) / 2**0.5)
    assert 0 < found["floor"] < found["sd"]
    assert found["floor"] ** 2 + found["noise"] ** 2 == pytest.approx(found["sd"] ** 2)


def test_a_rebaseline_with_more_trials_records_the_spread(worded: Project) -> None:
    result = worded.run("--fairness-rebaseline", "--fairness-trials", "40", target="python:app:service")
    assert says(result, "(standard deviation between 4 runs ")
    entry = json.loads((worded.path / "baselines/gifts.json").read_text())["items"]["refusals[name=Kim]"]
    assert entry["run_to_run"]["runs"] == 4
    assert 0 <= entry["run_to_run"]["sd"] < 0.2
    assert worded.verdicts(target="python:app:service")["refusals[name=Kim]"] in ("pass", "inconclusive")


def test_one_run_has_no_spread(worded: Project) -> None:
    result = worded.run("--fairness-rebaseline", target="python:app:service")
    assert not says(result, "standard deviation between")
    entry = json.loads((worded.path / "baselines/gifts.json").read_text())["items"]["refusals[name=Kim]"]
    assert "run_to_run" not in entry
