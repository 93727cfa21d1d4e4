"""`python -m pytest_fairness history`, and the recording of runs."""

from pathlib import Path

import pytest

from pytest_fairness.__main__ import main
from pytest_fairness.asking.store import Store
from pytest_fairness.records import Json, VerdictName
from pytest_fairness.run.history import History
from tests.support.projects import KIM, LOU, Project, ini
from tests.support.results import report, result

ITEM = ("products", "jsd[race=Black]")
TARGET = "openai:model"


def run(day: int, *, target: str = "openai:model", verdict: VerdictName = VerdictName.PASS) -> dict[str, Json]:
    document = report(result(verdict), result(value="Asian"), reused=0)
    return {**document, "started": f"2026-01-{day:02}T00:00:00Z", "target": target}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "120")
    path = tmp_path / "responses.sqlite"
    with Store(path) as opened:
        for day in (1, 2, 3):
            History(opened).add(run(day), {})
        History(opened).add(run(4, verdict=VerdictName.REGRESSION), {ITEM: "local"})
    return path


def test_runs_are_stored_in_order(store: Path) -> None:
    with Store(store) as opened:
        points = [point for point in History(opened).points() if (point["probe"], point["id"]) == ITEM]
    assert [point["started"][:10] for point in points] == ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
    assert [point["target"] for point in points] == ["openai:model"] * 3 + ["local"]
    assert points[0] == {
        "started": "2026-01-01T00:00:00Z",
        "tool": "pytest-fairness 1.2.3",
        "probe": "products",
        "id": "jsd[race=Black]",
        "value": 0.0612345,
        "interval": [0.048, 0.0741],
        "verdict": "pass",
        "target": "openai:model",
    }


def test_a_trend_has_runs_of_one_target_only(store: Path) -> None:
    with Store(store) as opened:
        assert {key: len(found) for key, found in History(opened).trends({ITEM: "openai:model"}).items()} == {ITEM: 3}
        assert len(History(opened).trends({ITEM: "local"})[ITEM]) == 1
        assert History(opened).trends({}) == {}


def test_a_trend_has_runs_of_one_server_and_of_new_answers_only(tmp_path: Path) -> None:
    def trend(server: str) -> list[str]:
        return [point["started"][8:10] for point in History(opened).trends({ITEM: TARGET}, {TARGET: server})[ITEM]]

    with Store(tmp_path / "responses.sqlite") as opened:
        for day, server, sent, reused, value in (
            (1, "http://a", 10, 0, 0.1),
            (2, "http://a", 10, 0, 0.1),  # all asked anew, by chance with the same value
            (3, "http://b", 10, 0, 0.3),
            (4, "http://a", 5, 5, 0.1),  # the requests of another item were new
            (5, "http://a", 5, 5, 0.2),
            (6, "http://a", 0, 10, 0.4),  # by another version of the tool, perhaps
            (7, "http://a", 0, 0, 0.2),  # the same file of answers
            (8, "http://a", 0, 0, 0.5),  # another one
        ):
            document = run(day)
            document["requests"] |= {"sent": sent, "reused": reused}
            for item in document["items"]:
                item["value"] = value
            History(opened).add(document, {}, {TARGET: server})
        assert trend("http://a") == ["01", "02", "05", "08"]
        assert trend("http://b") == ["03"]


def test_runs_without_values_are_not_recorded_and_old_runs_are_deleted(store: Path) -> None:
    with Store(store) as opened:
        history = History(opened, max_runs=2)
        history.add(report(result(VerdictName.ERROR)), {})
        history.add(run(9), {})
        assert sorted({point["started"][:10] for point in history.points()}) == ["2026-01-04", "2026-01-09"]


def test_an_empty_store_has_no_history(tmp_path: Path) -> None:
    with Store(tmp_path / "new.sqlite") as opened:
        assert list(History(opened).points()) == []


def test_each_item_has_a_row(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--store", str(store), "--last", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heading = "verdict       runs  last run    item             values, newest first"
    assert lines == [
        "local",
        heading,
        "✗ regression     1  2026-01-04  jsd[race=Black]  0.0612",
        "",
        "openai:model",
        heading.replace("verdict       ", "verdict  "),
        "✓ pass      4  2026-01-04  jsd[race=Asian]  0.0612  0.0612",
        "✓ pass      3  2026-01-03  jsd[race=Black]  0.0612  0.0612",
    ]


def test_a_narrow_terminal_cuts_names_and_old_values_but_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "responses.sqlite"
    names = [f"{group} person with a long description" for group in ("a", "another")]
    with Store(path) as opened:
        for day in range(1, 6):
            document = report(*(result(VerdictName.INCONCLUSIVE, value=name) for name in names), reused=0)
            History(opened).add({**document, "started": f"2026-01-0{day}T00:00:00Z"}, {})
    assert main(["history", "--store", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "verdict         runs  last run    item                      values, newest first",
        "? inconclusive     5  2026-01-05  jsd[a person …scription]  0.0612  0.0612",
        "? inconclusive     5  2026-01-05  jsd[another p…scription]  0.0612  0.0612",
    ]


def test_each_run_of_a_single_item_has_a_row(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--store", str(store), "--item", "jsd[race=Black]", "--last", "3"]) == 0
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert title == "products jsd[race=Black]"
    assert head.startswith("verdict       run (UTC)")
    assert [row.split()[2] for row in rows] == ["2026-01-02", "2026-01-03", "2026-01-04"]
    assert rows[-1].startswith("✗ regression  ")
    assert "[0.048, 0.0741]" in rows[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--probe", "letters"], "--probe letters: no run in "),
        (["--probe", "letters"], "has this probe. Recorded probes: products."),
        (["--item", "jsd"], "has this item. Recorded items: jsd[race=Asian], jsd[race=Black]."),
        (["--probe", "products", "--item", "jsd"], "--item jsd: no run of the probe products in "),
        (["--store", "none.sqlite"], "none.sqlite: there is no store at this path."),
    ],
)
def test_an_empty_selection_is_an_error_on_one_line(
    store: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["history", "--store", str(store), *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", [["history"], ["export", "--measurements", "results.csv"], ["store"]])
def test_the_store_is_that_of_the_environment_or_of_the_ini_file(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    project.write("pytest.ini", ini(fairness_store="cache/answers.sqlite"))
    project.probe()
    project.run("--fairness")
    project.write("docs/readme.md", "")
    for folder in (project.path, project.path / "docs"):
        monkeypatch.chdir(folder)
        assert main(command) == 0, capsys.readouterr().err
        assert main([*command, "--store", "cache/none.sqlite"]) == 2, "a path on the command line is taken from here"
    monkeypatch.setenv("PYTEST_FAIRNESS_STORE", "cache/none.sqlite")
    capsys.readouterr()
    assert main(command) == 2
    assert str(project.path / "cache" / "none.sqlite") in capsys.readouterr().err
    monkeypatch.setenv("PYTEST_FAIRNESS_STORE", "mysql://db/fairness")
    assert main(command) == 2
    assert "PYTEST_FAIRNESS_STORE must be the path of a file or the address of a database" in capsys.readouterr().err


@pytest.mark.parametrize("last", ["0", "-1", "x"])
def test_last_must_be_a_positive_number(last: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["history", f"--last={last}"])
    assert "must be a whole number of at least 1" in capsys.readouterr().err


def points_of(project: Project) -> list[dict[str, Json]]:
    with Store(project.path / ".fairness" / "responses.sqlite") as opened:
        return list(History(opened).points())


def test_runs_are_recorded_and_replays_are_not(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", "[pytest]\nfairness_target_version = 1\n")
    project.run("--fairness")
    project.run("--fairness", "-k", "Kim")
    project.run("--fairness", "--fairness-replay")
    project.run("--fairness", "--collect-only")
    assert [(point["id"], point["target"]) for point in points_of(project)] == [
        (KIM, "python:app:polite"),
        (LOU, "python:app:polite"),
        (KIM, "python:app:polite"),
    ]


def test_a_run_with_several_workers_is_recorded_once(project: Project) -> None:
    project.probe()
    project.run("--fairness", "-n", "2")
    assert sorted(point["id"] for point in points_of(project)) == [KIM, LOU]
