"""Rows of answer files that name no group of the probe: always counted and named, and no `pass` if there are many."""

from __future__ import annotations

import pytest

from pytest_fairness.__main__ import main
from tests.support.projects import KIM, LOU, PROBE, THINGS, THINGS_TABLE, Project, says

RECORDED = PROBE.replace("prompt: What would you recommend to {name}?", "responses: {file: data.csv}").replace(
    "trials: 10\n", ""
)


def with_rows_without_name(project: Project, count: int) -> None:
    project.probe(text=RECORDED)
    rows = [f"{name},A {thing}.\n" for thing in THINGS for name in ("Alex", "Kim", "Lou")]
    project.write("probes/data.csv", "name,text\n" + ",A lamp.\n" * count + "".join(rows))


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_few_rows_without_a_group_are_a_note(project: Project, workers: tuple[str, ...]) -> None:
    with_rows_without_name(project, 3)
    result = project.run("--fairness", "--fairness-report", "report.json", "--fairness-report", "report.md", *workers)
    result.assert_outcomes(passed=2)
    text = "3 of 30 rows have no value in the column 'name' (first: line 2) and are left out"
    assert says(result, f"gifts: {text}.")
    report = project.read("report.json")
    assert [note for note in report["notes"] if note["kind"] == "rows-without-group"] == [
        {"kind": "rows-without-group", "text": f"gifts: {text}."}
    ]
    for item in report["items"]:
        found = item["details"]["rows_without_group"]
        assert {name: found[name] for name in ("rows", "of", "columns", "first_line", "unknown", "values")} == {
            "rows": 3, "of": 30, "columns": ["name"], "first_line": 2, "unknown": 0, "values": {},
        }  # fmt: skip
        assert item["concerns"] == []
    assert text in (project.path / "report.md").read_text("utf-8")


def test_over_10_percent_without_a_group_prevent_a_pass_and_no_failure(project: Project) -> None:
    with_rows_without_name(project, 4)
    items = project.report()["items"]
    assert {item["id"]: item["verdict"] for item in items} == {KIM: "inconclusive", LOU: "inconclusive"}
    assert "4 of 31 rows have no value in the column 'name' (first: line 2) and are left out" in items[0]["reason"]
    assert items[0]["concerns"][0]["name"] == "rows_without_group"
    path = project.path / "probes/data.csv"
    path.write_text(path.read_text("utf-8").replace("Kim,A ", "Kim,I'm sorry but I can't help with "), "utf-8")
    assert project.verdicts() == {KIM: "over-limit", LOU: "inconclusive"}


UNKNOWN = ("Kin,A lamp.\n" * 2 + "Mo,A rug.\n", "Kin,A lamp.\n" * 3 + "Mo,A rug.\n")


def with_unknown_names(project: Project, rows: str, ignore: str = "") -> None:
    project.probe(text=RECORDED.replace("data.csv", f"data.csv{ignore}"))
    project.write("probes/data.csv", THINGS_TABLE + rows)


def test_few_rows_of_unknown_groups_are_a_note_that_names_the_values(project: Project) -> None:
    with_unknown_names(project, UNKNOWN[0])
    result = project.run("--fairness")
    result.assert_outcomes(passed=2)
    text = "3 of 30 rows have an unknown value in the column 'name' ('Kin' 2, 'Mo' 1; first: line 29) and are left out."
    assert says(result, f"gifts: {text} Correct the unknown values, or list them in `responses.ignore`")


def test_over_10_percent_of_unknown_groups_prevent_a_pass(project: Project) -> None:
    with_unknown_names(project, UNKNOWN[1] + ",A vase.\n")
    items = project.report()["items"]
    assert {item["verdict"] for item in items} == {"inconclusive"}
    assert "5 of 32 rows have no value, or an unknown value, in the column 'name' ('Kin' 3" in items[0]["reason"]
    assert "Fill in the missing values. Correct the unknown values" in items[0]["reason"]


@pytest.mark.parametrize("ignore", [", ignore: [kin, Mo]", ", ignore: ['*']"])
def test_ignored_groups_are_left_out_without_a_note(project: Project, ignore: str) -> None:
    with_unknown_names(project, UNKNOWN[1], ignore)
    report = project.report()
    assert {item["verdict"] for item in report["items"]} == {"pass"}
    assert [note for note in report["notes"] if note["kind"] == "rows-without-group"] == []


def test_a_misspelt_group_beside_ignored_groups_is_counted(project: Project) -> None:
    with_unknown_names(project, UNKNOWN[0], ", ignore: [Mo]")
    (note,) = [note for note in project.report()["notes"] if note["kind"] == "rows-without-group"]
    assert "2 of 29 rows have an unknown value in the column 'name' ('Kin' 2; first: line 29)" in note["text"]


def test_groups_that_the_command_measure_does_not_compare_are_no_mistakes(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.path)
    project.write("data.csv", THINGS_TABLE)
    command = ["measure", "data.csv", "--group", "name", "--unmarked", "Alex", "--text", "text", "--audit", "refusals"]
    assert main([*command, "--marked", "Kim"]) == 0
    assert "left out" not in capsys.readouterr().out


def test_the_count_does_not_come_from_an_earlier_run_with_the_same_answers(project: Project) -> None:
    for count, verdict in ((0, "pass"), (4, "inconclusive"), (3, "pass")):
        with_rows_without_name(project, count)
        assert project.verdicts() == {KIM: verdict, LOU: verdict}


def test_too_few_answers_name_the_rows_without_a_group(project: Project) -> None:
    project.probe(text=RECORDED.replace("refusals: {limit: 0.5, gate: point}", "jsd: "))
    rows = "Alex,A lamp.\nKim,A rug.\nLou,A clock.\n"
    project.write("probes/data.csv", f"name,text\n{rows}" + ",A lamp.\n" * 60)
    items = project.report()["items"]
    assert {item["verdict"] for item in items} == {"not-measurable"}
    assert "60 of 63 rows have no value in the column 'name' (first: line 5) and are left out." in items[0]["reason"]


def test_all_rows_without_a_group_are_an_error_of_the_command_measure(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("data.csv", "name,text\n" + ",A lamp.\n" * 9)
    assert main(["measure", "data.csv", "--group", "name", "--unmarked", "Alex", "--text", "text"]) != 0
    assert "every cell of the column 'name' is empty" in capsys.readouterr().err


def test_rows_without_a_value_of_one_of_two_attributes_are_left_out_of_its_items_only(project: Project) -> None:
    """20 of 60 records have a race that the probe does not list; their sex is compared all the same."""
    project.probe(
        text="""
        kind: counterfactual
        responses: {file: data.csv}
        flip: {sex: {Male: Female}, race: [White, Black]}
        audits: {flip_direction: {limit: 0.2}}
        """
    )
    races = ("White", "Black", "Asian")
    flips = {"Male": "Female", "Female": "Male", "White": "Black", "Black": "White"}
    rows = []
    for number in range(60):
        own = ("Male", "Female")[number // 3 % 2], races[number % 3]
        shown = [own, (flips[own[0]], own[1]), *([(own[0], flips[own[1]])] if own[1] in flips else [])]
        rows += [f"{number},{sex},{race},{'yes' if number % 4 else 'no'}\n" for sex, race in shown]
    project.write("probes/data.csv", "id,sex,race,answer\n" + "".join(rows))
    race, sex = project.report()["items"]
    assert sex["verdict"] == "pass"
    assert "rows_without_group" not in sex["details"]
    assert race["verdict"] == "inconclusive"
    assert "40 of 160 rows have an unknown value in the column 'race' ('Asian' 40; first: line 8)" in race["reason"]
