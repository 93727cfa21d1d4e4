"""Impact ratios in whole runs: the example of the guide, a model server with a planted intersection, baselines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest

from tests.integration.test_docs import DOCS, blocks_of
from tests.support.projects import Project
from tests.support.servers import Body, ChatServer, Messages

GUIDE = DOCS / "how-to" / "impact-ratios.md"
SERVICE = """
kind: counterfactual
prompt: |
  Applicant {number}; sex is {sex}; race is {race}.
  Shall we invite this person? Answer yes or no.
records: {file: people.csv}
flip:
  sex+race: {sex: {Male: Female}, race: [White, Black]}
audits:
  impact_ratio: {limit: 0.8, wordings: all}
  flip_direction: {limit: 0.5}
"""


def people() -> list[tuple[str, str, int, int]]:
    """Return the rows of the guide's table of decisions: sex, race, number of applicants, number of selected."""
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (\d+) \| (\d+) \| ([\d.]+) \|$", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert all(float(rate) == pytest.approx(int(hits) / int(size), abs=6e-4) for _, _, size, hits, rate in rows)
    return [(sex, race, int(size), int(hits)) for sex, race, size, hits, _ in rows]


def test_the_example_of_the_guide_gives_what_the_guide_says(project: Project) -> None:
    blocks = blocks_of(GUIDE)
    rows = ["id,sex,race,answer"]
    for sex, race, size, hits in people():
        rows += [f"{len(rows) + place},{sex},{race},{'yes' if place < hits else 'no'}" for place in range(size)]
    project.write("probes/applicants.csv", "\n".join(rows))
    project.probe("probes/hiring.yaml", next(each.text for each in blocks if each.title == "probes/hiring.yaml"))
    run = project.run("--fairness", "--fairness-report", "report.json", target=None)
    output = [line.rstrip() for line in run.outlines]
    shown = next(each.text for each in blocks if each.language == "text").splitlines()
    assert [line for line in shown if line not in output] == []
    items = {item["id"]: item for item in project.read("report.json")["items"]}
    assert items["impact_ratio[race]"]["reason"].endswith(
        "Not compared: Asian (2 of 6 records, less than 2% of the records)."
    )
    assert items["impact_ratio[race]"]["p_value"] == pytest.approx(0.0151, abs=1e-4)
    sexes = items["impact_ratio[sex]"]
    # statsmodels 0.15.0, proportions_ztest([61, 76], [206, 200]): p = 0.0740. A permutation's variance is larger by
    # 406 / 405.
    assert sexes["p_value"] == pytest.approx(0.0743, abs=1e-4)
    women = next(part for part in sexes["details"]["rates"] if part["group"] == "Female")
    error = math.sqrt(1 / 61 - 1 / 206 + 1 / 76 - 1 / 200)
    expected = [61 / 206 / (76 / 200) * math.exp(sign * 1.959964 * error) for sign in (-1, 1)]
    assert women["ratio_interval"] == pytest.approx(expected, abs=1e-6)


def invite(disadvantage: int) -> Callable[[Messages, Body], str]:
    """Return a service that invites 60 of 100 applicants, but of Black women only 60 − `disadvantage`."""

    def reply(messages: Messages, _body: Body) -> str:
        found = re.search(r"Applicant (\d+); sex is (\w+); race is (\w+)", str(messages))
        assert found
        number, sex, race = found.groups()
        invited = 60 - disadvantage * (sex == "Female" and race == "Black")
        return "Yes." if int(number) % 100 < invited else "No."

    return reply


@pytest.mark.parametrize(("disadvantage", "expected"), [(30, "over-limit"), (0, "pass")])
def test_a_service_that_disadvantages_an_intersection(project: Project, disadvantage: int, expected: str) -> None:
    rows = [f"{number},{('Male', 'Female')[number % 2]},{('White', 'Black')[number // 2 % 2]}" for number in range(100)]
    project.write("probes/people.csv", "\n".join(["number,sex,race", *rows]))
    project.probe("probes/invited.yaml", SERVICE)
    with ChatServer(invite(disadvantage)) as server:
        options = ("--fairness-base-url", server.url, "--fairness-report", "report.json")
        run = project.run("--fairness", *options, target="openai:recruiter")
    items = {item["id"]: item for item in project.read("report.json")["items"]}
    ratio = items["impact_ratio[sex+race]"]
    assert ratio["verdict"] == expected
    assert ratio["value"] == pytest.approx((60 - disadvantage) / 60)
    # 100 records × 4 combinations, once for both audits.
    assert server.count == 400
    (table,) = ratio["details"]["intersections"]
    gaps = {tuple(entry["cell"]): entry.get("gap", 0.0) for entry in table["cells"]}
    assert gaps["Female", "Black"] == pytest.approx(-disadvantage / 60)
    assert gaps["Female", "White"] == gaps["Male", "Black"] == 0.0
    assert ("0.5 -0.5 ▼▼▼" in run.stdout.str()) == bool(disadvantage)


def test_a_service_that_gets_worse_for_an_intersection(project: Project) -> None:
    rows = [f"{number},{('Male', 'Female')[number % 2]},{('White', 'Black')[number // 2 % 2]}" for number in range(100)]
    project.write("probes/people.csv", "\n".join(["number,sex,race", *rows]))
    project.probe("probes/invited.yaml", SERVICE.replace("limit: 0.8, ", "").replace("{limit: 0.5}", "{}"))
    for disadvantage, expected in ((0, {"pass"}), (30, {"regression"})):
        more = ("--fairness-fresh",) if disadvantage else ("--fairness-rebaseline",)
        with ChatServer(invite(disadvantage)) as server:
            options = ("--fairness-base-url", server.url, *more)
            report = project.report(*options, target="openai:recruiter")
        assert {item["verdict"] for item in report["items"]} == expected
    reasons = {item["audit"]: item["reason"] for item in report["items"]}
    assert "positive answers of Female; Black 60.0% to 30.0%" in reasons["impact_ratio"]


def test_advice_names_no_tolerance_that_excludes_nothing_and_settings_for_limit_and_change(project: Project) -> None:
    def decisions(women: range) -> str:
        rows = [f"{n},{'MF'[n % 2]},{'yes' if n // 2 in (range(8), women)[n % 2] else 'no'}" for n in range(40)]
        return "\n".join(["id,sex,answer", *rows])

    project.probe(
        "probes/few.yaml",
        "kind: counterfactual\nresponses: {file: few.csv}\nflip: {sex: [M, F]}\n"
        "audits: {impact_ratio: {}, demographic_parity: {limit: 0.05}}",
    )
    project.write("probes/few.csv", decisions(range(12, 20)))
    project.report("--fairness-rebaseline", target=None)
    project.write("probes/few.csv", decisions(range(6)))
    found = {item["audit"]: item for item in project.report(target=None)["items"]}
    assert {item["verdict"] for item in found.values()} == {"inconclusive"}
    # Twice any tolerance that this run decides is more than the whole range of the ratio.
    assert "`tolerance`" not in found["impact_ratio"]["reason"]
    assert re.search(
        r"A `tolerance` of 0\.\d+ or more with a `limit` of 0\.\d+ or more can be decided at this size\.",
        found["demographic_parity"]["reason"],
    )
