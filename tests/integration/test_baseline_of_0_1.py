"""A probe, baseline and answers of pytest-fairness 0.1, as its first build wrote them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.projects import Project

FILES = Path(__file__).parents[1] / "support/baseline_0_1"
CONFTEST = """
import gzip, json
import pytest

@pytest.fixture(scope="session")
def fairness_target(pytestconfig):
    file = pytestconfig.rootpath / "baselines/letters.responses.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    texts = {}
    for row in sorted(rows, key=lambda row: row["trial"]):
        texts.setdefault(row["labels"]["applicant"], []).append(row["text"])
    waiting = {name: iter(found) for name, found in texts.items()}
    return lambda prompt: next(waiting["Kelly" if "Kelly" in prompt else "Joseph"])
"""
"""Target that repeats the answers of the baseline."""


@pytest.fixture
def letters(project: Project) -> Project:
    project.write("conftest.py", CONFTEST)
    for name in ("probes/letters.yaml", "baselines/letters.json", "baselines/letters.responses.jsonl.gz"):
        copy = project.path / name
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(FILES / copy.name, copy)
    return project


def test_the_same_answers_have_not_changed_since_a_baseline_of_0_1(letters: Project) -> None:
    items = {item["audit"]: item for item in letters.report(target=None)["items"]}
    assert {name: item["verdict"] for name, item in items.items()} == {
        "jsd": "pass",
        "marked_words": "inconclusive",  # 32 texts are too few
        "refusals": "pass",
        "svm": "pass",
    }
    assert {item["change"]["value"] for item in items.values()} == {0}
    # The file has 0.00601314: the draws of the permutation test were seeded by the probe's name, too.
    assert items["jsd"]["baseline"]["value"] == pytest.approx(0.00601314, abs=2e-4)
    assert "measured again from the baseline's answers" in items["svm"]["reason"], "0.1 measured 0.5375"


def test_values_of_0_1_count_if_the_answers_were_not_kept(letters: Project) -> None:
    answers = letters.path / "baselines/letters.responses.jsonl.gz"
    letters.write("conftest.py", CONFTEST.replace("baselines/", ""))
    shutil.move(answers, letters.path)
    items = {item["audit"]: item for item in letters.report(target=None)["items"]}
    assert {name: item["baseline"]["value"] for name, item in items.items()} == {
        "jsd": 0.00601314,
        "marked_words": 0,
        "refusals": 0,
        "svm": 0.5375,
    }
    assert not {"stale-baseline", "error"} & {item["verdict"] for item in items.values()}
