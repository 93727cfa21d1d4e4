"""`python -m pytest_fairness diff --log`: acceptances over time, in real git repositories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.__main__ import main
from pytest_fairness.baselines.writing import update_baseline
from tests.integration.commands.test_diff import JSD, entry, rows
from tests.support.projects import Project

OTHER = "svm[race=Black]"


@pytest.fixture
def log(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs `diff --log` in the project and returns its output, or the error."""
    monkeypatch.chdir(project.path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> str:
        main(["diff", "--log", *arguments])
        out, err = capsys.readouterr()
        return out or err

    return run


def accept(project: Project, values: Mapping[str, float], day: int, remove: tuple[str, ...] = (), **told: Any) -> None:
    """Write new values of the baseline `products`, measured on this day of January."""
    entries = {item: entry(value, date=f"2026-01-{day:02}T00:00:00Z", **told) for item, value in values.items()}
    update_baseline(Path("baselines").absolute(), "products", entries, rows(f"Day {day}"), remove=remove)


def test_each_acceptance_is_listed_the_latest_first(project: Project, log: Callable[..., str]) -> None:
    accept(project, {JSD: 0.018, OTHER: 0.6}, 1, accepted_by="Jane")
    first = project.commit()[:7]
    accept(project, {JSD: 0.061}, 5, accepted_by="Joe", reason="New tone, see #42")
    second = project.commit()[:7]
    accept(project, {JSD: 0.05}, 9, remove=(OTHER,), accepted_by="Jane", reason="Milder")
    assert log().splitlines()[4:] == [
        f"  products {OTHER}: 0.6 → removed",
        "",
        "2026-01-09 Jane (not committed)",
        "  reason: Milder",
        f"  products {JSD}: 0.061 → 0.05",
        "",
        f"2026-01-05 Joe (commit {second})",
        "  reason: New tone, see #42",
        f"  products {JSD}: 0.018 → 0.061",
        "",
        f"2026-01-01 Jane (commit {first})",
        "  reason: no reason given",
        f"  products {JSD}: 0.018 (new)",
        f"  products {OTHER}: 0.6 (new)",
    ]
    title, _, who, why, *_ = log().splitlines()
    assert title == "4 acceptances of 5 values, whole history."
    assert who.endswith(" name not recorded (not committed)")
    assert why == "  reason: items removed"


def test_a_range_lists_only_its_commits(project: Project, log: Callable[..., str]) -> None:
    for day in (1, 2, 3, 4):
        accept(project, {JSD: day / 100}, day, reason=f"Day {day}")
        project.commit()
    found = log("HEAD~2..HEAD~1")
    assert found.startswith("1 acceptance of 1 value, from HEAD~2 (")
    assert "Day 3" in found
    assert "Day 2" not in found
    assert "Day 4" not in found
    assert log("HEAD~1").count("reason: Day 4") == 1
    assert log("HEAD").startswith("No acceptance, from HEAD (")
    assert "has no revision 'none'" in log("none..HEAD")


def test_markdown_is_a_table(project: Project, log: Callable[..., str]) -> None:
    accept(project, {JSD: 0.018, OTHER: 0.6}, 1, accepted_by="Jane <b>", reason="a|b")
    commit = project.commit()[:7]
    log("-o", "log.md")
    text = (project.path / "log.md").read_text("utf-8")
    assert text == log("--format", "markdown")
    assert "| date | accepted by | reason | items: old → new | commit |" in text
    items = "products jsd\\[race=Black\\]: 0.018 (new)<br>products svm\\[race=Black\\]: 0.6 (new)"
    assert f"| 2026-01-01 | Jane &lt;b&gt; | a\\|b | {items} | commit {commit} |" in text


def test_branches_are_followed_and_a_merge_has_only_what_it_accepts_itself(
    project: Project, log: Callable[..., str]
) -> None:
    accept(project, {JSD: 0.01, OTHER: 0.5}, 1, reason="Base")
    project.commit()
    project.git("checkout", "-q", "-b", "side")
    accept(project, {JSD: 0.02}, 2, reason="Side")
    project.commit()
    project.git("checkout", "-q", "main")
    accept(project, {OTHER: 0.6}, 3, reason="Main")
    project.commit()
    project.git("merge", "-q", "--no-commit", "-s", "ours", "side")
    accept(project, {JSD: 0.03}, 4, reason="Merge")
    project.commit()
    text = log()
    assert [line for line in text.splitlines() if "reason" in line] == [
        "  reason: Merge", "  reason: Main", "  reason: Side", "  reason: Base",
    ]  # fmt: skip
    assert f"  products {JSD}: 0.01 → 0.03" in text, "the value before is that of the first parent"


def test_a_renamed_probe_is_no_acceptance(project: Project, log: Callable[..., str]) -> None:
    accept(project, {JSD: 0.018}, 1)
    project.commit()
    text = (project.path / "baselines/products.json").read_text("utf-8")
    project.git("rm", "-q", "baselines/products.json")
    project.write("baselines/goods.json", text.replace('"products"', '"goods"'))
    project.commit()
    assert log().startswith("1 acceptance of 1 value")


def test_a_damaged_file_is_named_and_the_others_are_listed(project: Project, log: Callable[..., str]) -> None:
    accept(project, {JSD: 0.018}, 1, reason="First")
    project.write("baselines/broken.json", "{")
    project.commit()
    text = log()
    assert "broken.json:1: is not JSON" in text
    assert "reason: First" in text


def test_a_file_that_was_damaged_for_a_while_is_neither_removed_nor_new(
    project: Project, log: Callable[..., str]
) -> None:
    accept(project, {JSD: 0.018}, 1)
    whole = (project.path / "baselines/products.json").read_text("utf-8")
    project.commit()
    for text in ("<<<<<<< ours\n", whole):
        project.write("baselines/products.json", text)
        project.commit()
    text = log()
    assert text.startswith("1 acceptance of 1 value")
    assert "unresolved merge conflict" in " ".join(text.split())


def test_without_repository_or_baselines_there_is_an_error(project: Project, log: Callable[..., str]) -> None:
    assert "baselines cannot be compared with a git revision" in log()
    project.write("x.txt", "")
    project.commit()
    assert "neither the folder nor the git history has a baseline" in log()


def test_what_a_user_accepts_is_listed(project: Project, log: Callable[..., str]) -> None:
    project.probe(text="kind: generation\nprompt: Hi {name}\naxes:\n  name: {unmarked: Alex, marked: [Kim]}\n"
                  "trials: 10\naudits:\n  refusals: {gate: point}\n")  # fmt: skip
    project.run("--fairness-rebaseline", "--fairness-accepted-by", "Jane")
    project.commit()
    project.run(
        "--fairness-rebaseline", "--fairness-accepted-by", "Jane", "--fairness-reason", "Known, see #7",
        target="python:app:biased",
    )  # fmt: skip
    project.commit()
    text = log("HEAD~1..HEAD")
    assert "reason: Known, see #7" in text
    assert "gifts refusals[name=Kim]: 0 → 1" in text
