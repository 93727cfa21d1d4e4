"""`--fairness-against`: another git revision's baselines judge the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.projects import KIM, LOU, PROBE, Project, ini, says

UNLIMITED = PROBE.replace("{limit: 0.5, gate: point}", "{tolerance: 0.25, gate: point}")
BIASED = "python:app:biased"
AGAINST = ("--fairness-against", "main")


@pytest.fixture
def gifts(project: Project) -> Project:
    """Return a project with a baseline in the branch `main`, on another branch."""
    project.probe(text=UNLIMITED)
    project.write("pytest.ini", ini(fairness_target_version="1"))
    project.write(".gitignore", ".fairness\n__pycache__\ncalls.txt\n*.json\n!baselines/*.json\n")
    project.run("--fairness-rebaseline").assert_outcomes(passed=2)
    project.commit()
    project.git("switch", "-q", "-c", "change")
    return project


def told(project: Project, *arguments: str, target: str = "python:app:polite") -> dict[str, tuple[str, list[str]]]:
    """Return verdict and phrases about the other revision of each item, by id."""
    items = project.report(*AGAINST, *arguments, target=target)["items"]
    return {item["id"]: (item["verdict"], item["against"]["phrases"]) for item in items}


def notes(project: Project) -> list[str]:
    return [note["text"] for note in project.read("report.json")["notes"] if "default" not in note["kind"]]


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_change_that_rebaselines_is_judged_by_the_base(gifts: Project, workers: tuple[str, ...]) -> None:
    gifts.run("--fairness-rebaseline", target=BIASED)
    gifts.commit()
    gifts.run("--fairness", target=BIASED).assert_outcomes(passed=2)
    assert told(gifts, *workers, target=BIASED) == {
        KIM: ("regression", ["accepted in this change: worse by 1 ± 0.31 (0 → 1)"]),
        LOU: ("pass", ["accepted in this change: unchanged (0 → 0)"]),
    }
    [note] = notes(gifts)
    assert "judged by the baselines of main (" in note
    assert "this change accepts new baselines of 2 items, 1 of them worse than allowed" in note
    result = gifts.run("--fairness", *AGAINST, *workers, target=BIASED)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert says(result, "fairness: judged by the baselines of main (")
    assert not says(result, "To accept the current values")  # they are accepted already


def test_answers_to_changed_prompts_are_compared(gifts: Project) -> None:
    for key, told_as in (("prompt", "prompt changed"), ("system", "system prompt changed")):
        text = UNLIMITED.replace("What would", "Which present would") if key == "prompt" else f"{UNLIMITED}system: Hi\n"
        gifts.probe(text=text)
        assert gifts.verdicts() == dict.fromkeys((KIM, LOU), "stale-baseline")
        assert told(gifts) == dict.fromkeys((KIM, LOU), ("pass", [told_as]))
        assert told(gifts, target=BIASED) == {KIM: ("regression", [told_as]), LOU: ("pass", [told_as])}
        [item] = [item for item in gifts.read("report.json")["items"] if item["id"] == KIM]
        assert item["change"]["value"] == 1
        assert "Compared with the baseline of main (" in item["reason"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("unmarked: Alex", "unmarked: Alan", "axis name"),
        ("prompt: What would you recommend to {name}?", "prompt: ['One for {name}', 'Two for {name}']", "prompt"),
    ],
)
def test_what_cannot_be_compared_stays_stale(gifts: Project, old: str, new: str, said: str) -> None:
    gifts.probe(text=UNLIMITED.replace(old, new))
    gifts.run("--fairness-rebaseline")
    gifts.run("--fairness").assert_outcomes(passed=2)
    assert {verdict for verdict, _ in told(gifts).values()} == {"stale-baseline"}
    assert said in gifts.read("report.json")["items"][0]["undecided"]


def test_removed_renamed_and_new_baselines_are_named(gifts: Project) -> None:
    for path in (gifts.path / "baselines").iterdir():
        path.unlink()
    assert told(gifts) == dict.fromkeys((KIM, LOU), ("pass", ["baseline removed in this change"]))
    gifts.git("checkout", "-q", ".")
    gifts.probe(text=f"name: presents\n{UNLIMITED}")
    assert told(gifts) == {item: ("pass", [f"renamed from gifts {item}"]) for item in (KIM, LOU)}
    assert not any("without an item" in note for note in notes(gifts))
    (gifts.path / "probes/gifts.yaml").unlink()
    gifts.probe("probes/new.yaml", UNLIMITED.replace("What", "Now what"))
    gifts.run("--fairness-rebaseline")
    assert told(gifts) == dict.fromkeys((KIM, LOU), ("pass", ["new in this change, with the first baseline 0"]))
    assert "1 baseline of main (" in notes(gifts)[-1]
    assert notes(gifts)[-1].partition("nothing is compared: ")[2].startswith("gifts.")
    gifts.write("pytest.ini", ini(fairness_target_version="1", fairness_fail_on="orphans"))
    assert gifts.run("--fairness", *AGAINST).ret == pytest.ExitCode.TESTS_FAILED


def test_a_looser_tolerance_is_named(gifts: Project) -> None:
    gifts.probe(text=UNLIMITED.replace("0.25", "2"))
    assert told(gifts, target=BIASED)[KIM] == ("pass", ["tolerance changed: 0.25 → 2"])


def test_a_folder_without_baselines_in_the_revision_is_named(gifts: Project) -> None:
    gifts.write("pytest.ini", ini(fairness_target_version="1", fairness_baselines="others"))
    gifts.run("--fairness-rebaseline")
    told(gifts)
    assert "has no baselines in this folder, so that nothing is compared with it" in notes(gifts)[0]


def test_a_damaged_baseline_of_the_revision_is_an_error_that_names_it(gifts: Project) -> None:
    gifts.write("baselines/gifts.json", "{")
    gifts.git("commit", "-q", "-a", "-m", "damaged")
    gifts.git("branch", "-f", "main")
    gifts.git("checkout", "-q", "HEAD~1", "--", "baselines")
    item = gifts.report(*AGAINST)["items"][0]
    assert item["verdict"] == "error"
    assert ", gifts.json:1: is not JSON" in item["reason"]
    assert "main (" in item["reason"]
    assert str(gifts.path.root) not in item["reason"].partition("Repair")[0].replace("probes/", "")


def test_answers_that_the_revision_does_not_store_leave_the_values(gifts: Project) -> None:
    (gifts.path / "baselines/gifts.responses.jsonl").unlink()
    gifts.commit()
    gifts.git("branch", "-f", "main")
    gifts.probe(text=UNLIMITED.replace("What", "Now what"))
    assert told(gifts, target=BIASED)[KIM][0] in ("regression", "inconclusive")
    assert gifts.read("report.json")["items"][0]["change"]["from_answers"] is False


def usage_error(project: Project, *arguments: str) -> str:
    result = project.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in result.stderr.lines if line.startswith("ERROR: ")]
    return line.removeprefix("ERROR: ")


def test_a_revision_that_cannot_be_read_ends_the_run_with_one_message(gifts: Project, tmp_path: Path) -> None:
    against = "--fairness-against"
    assert "the git repository has no revision 'nope'" in usage_error(gifts, "--fairness", against, "nope").lower()
    assert "one revision" in usage_error(gifts, "--fairness", against, "main..change")
    assert "is empty" in usage_error(gifts, "--fairness", f"{against}=")
    assert "has no effect without --fairness" in usage_error(gifts, against, "main")
    assert "Run them separately" in usage_error(gifts, "--fairness-rebaseline", against, "main")
    gifts.git("clone", "-q", "--depth", "1", f"file://{gifts.path}", str(tmp_path / "shallow"))
    (gifts.path / ".git").rename(tmp_path / "git")
    assert "not a git repository" in usage_error(gifts, "--fairness", against, "main")
    (tmp_path / "shallow/.git").rename(gifts.path / ".git")
    assert "The clone is shallow and lacks the revision 'main'" in usage_error(gifts, "--fairness", against, "main")
