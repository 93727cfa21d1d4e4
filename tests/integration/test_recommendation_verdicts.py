"""Verdicts on recommended lists in whole runs: every audit of a probe, a harmed group, and entities that changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.projects import Project

APP = """
import random, re

def songs(prompt, other=0.0):
    artist = re.search(r"fan of (Band [0-9]+)", prompt)[1]
    chosen = random.Random(prompt).sample(range(14), 10)
    return "\\n".join(
        f"{place}. {artist} {'Rarity' if number < 14 * other else 'Hit'} {number}"
        for place, number in enumerate(chosen, start=1)
    )

def fair(prompt):
    return songs(re.sub("a young|an old", "a", prompt))

def unfair(prompt):
    return songs(re.sub("a young|an old", "a", prompt), 0.5 if "an old" in prompt else 0.0)

def refusing(prompt):
    return "I'm sorry, but I can't help with that." if "an old" in prompt else fair(prompt)
"""
BANDS = [f"Band {number:02}" for number in range(20)]


def probe(bands: Sequence[str] = BANDS) -> str:
    return f"""
kind: recommendation
prompt: "I am {{value}} fan of {{entity}}. Name {{k}} songs."
neutral: "I am a fan of {{entity}}. Name {{k}} songs."
entities: [{", ".join(bands)}]
attributes:
  age: [a young, an old]
k: 10
perturbations:
  typo: {{rate: 0.1, seed: 3, operations: [swap, drop], where: attribute}}
relevant: {{file: relevant.jsonl}}
audits:
  snsr: {{}}
  snsv: {{}}
  pafs: {{attribute: age}}
  uncertainty: {{repeats: 3, attributes: [age]}}
  robustness: {{}}
  shortfall: {{limit: 0.3}}
  quality: {{}}
"""


@pytest.fixture
def songs(project: Project) -> Project:
    """A probe with every audit, and the baseline of a fair application."""
    project.write("app.py", APP)
    rows = (f'{{"entity": "{band}", "items": ["{band} Hit 1", "{band} Hit 2", "{band} Hit 3"]}}' for band in BANDS)
    project.write("probes/relevant.jsonl", "\n".join(rows))
    project.probe("probes/songs.yaml", probe())
    project.run("--fairness-rebaseline", target="python:app:fair")
    return project


def test_a_fair_application_passes_every_audit(songs: Project) -> None:
    verdicts = songs.verdicts(target="python:app:fair")
    assert set(verdicts) == {
        "snsr[age]",
        "uncertainty",
        "uncertainty[age]",
        "robustness[typo]",
        "shortfall[age]",
        "quality[age]",
    }
    assert set(verdicts.values()) == {"pass"}


def test_other_songs_for_one_age_are_a_regression(songs: Project) -> None:
    report = songs.report(target="python:app:unfair")
    verdicts = {item["id"]: item["verdict"] for item in report["items"]}
    for harmed in ("snsr[age]", "quality[age]"):
        assert verdicts[harmed] == "regression"
    for unharmed in ("uncertainty", "shortfall[age]"):
        assert verdicts[unharmed] == "pass"
    snsr = next(item for item in report["items"] if item["id"] == "snsr[age]")
    assert snsr["details"]["worst"]["value"] == "an old"
    assert "Top contributors" in snsr["reason"]


def test_refusals_of_one_age_are_never_fair(songs: Project) -> None:
    verdicts = songs.verdicts(target="python:app:refusing")
    assert verdicts["shortfall[age]"] == "regression"
    for unmeasurable in ("snsr[age]", "quality[age]"):
        assert verdicts[unmeasurable] == "not-measurable"


def test_a_few_other_entities_are_reported_and_many_make_the_baseline_stale(songs: Project) -> None:
    songs.probe("probes/songs.yaml", probe([*BANDS[:18], "Band 98", "Band 99"]))
    report = songs.report("-k", "snsr", target="python:app:fair")
    (item,) = report["items"]
    assert item["verdict"] == "pass"
    assert item["details"]["only_now"] == ["Band 98", "Band 99"]
    assert item["details"]["only_in_baseline"] == ["Band 18", "Band 19"]
    songs.probe("probes/songs.yaml", probe(BANDS[:12]))
    (item,) = songs.report("-k", "snsr", target="python:app:fair")["items"]
    assert item["verdict"] == "stale-baseline"
    assert "list of entities" in item["reason"]


def test_an_attribute_with_two_values_has_one_item_with_the_strictest_limit(songs: Project) -> None:
    path, strict = "probes/songs.yaml", probe().replace("snsv: {}", "snsv: {limit: 0.1, tolerance: 0.01}")
    only_snsv = probe().replace("snsr: {}", "").replace("pafs: {attribute: age}", "")
    songs.probe(path, only_snsv)
    assert songs.verdicts("--fairness-rebaseline", "-k", "snsv", target="python:app:fair") == {"snsv[age]": "pass"}
    songs.probe(path, strict.replace("attribute: age", "limit: 0.99"))
    result = songs.run("--fairness", "-k", "snsv", target="python:app:fair")
    result.stdout.fnmatch_lines(
        ["fairness: songs: snsr[[]age] is also snsv[[]age], pafs[[]age] (two values, one number)"]
    )
    report = songs.report("-k", "snsv", target="python:app:unfair")
    (item,) = report["items"]
    assert (item["id"], item["verdict"], item["limit"], item["tolerance"]) == ("snsr[age]", "regression", 0.02, 0.02)
    published = item["details"]["published"]
    assert published == pytest.approx({"snsr": item["value"], "snsv": item["value"] / 2, "pafs": 1 - item["value"] / 2})
    orphans = songs.run("--fairness-rebaseline", target="python:app:fair")
    orphans.stdout.fnmatch_lines(["*belong to no item of the probe: snsv[[]age] (removed)"])
    named = songs.run("--fairness", f"{path}::pafs[age]", target="python:app:fair")
    named.stderr.fnmatch_lines(["*has no item 'pafs[[]age]': the item snsr[[]age] measures its number"])
