"""`fairness_check` of scores that a Python test has computed."""

from __future__ import annotations

import pytest

from tests.support.projects import Project, says, shows

HEADER = """
import random

import pytest

def rows(gap=0.0, size=60, groups=("men", "women"), seed=None, **more):
    drawn = random.Random(seed)
    return [
        {"group": group, "score": drawn.gauss(50 - (gap if group == "women" else 0), 10), **more}
        for group in groups
        for _ in range(size)
    ]
"""
TEST = """
def test_marks(fairness_check):
    assert fairness_check("marks", DATA, unmarked="men", better="higher", tolerance=8).name
"""


@pytest.fixture
def marks(project: Project) -> Project:
    check(project, "rows()")
    return project


def check(project: Project, data: str, test: str = TEST) -> None:
    project.write("test_marks.py", f"{HEADER}{test.replace('DATA', data)}")


def run(project: Project, *arguments: str) -> pytest.RunResult:
    return project.run("test_marks.py", *arguments, target=None)


def verdicts(project: Project, data: str, test: str = TEST) -> dict[str, str]:
    check(project, data, test)
    return project.verdicts("test_marks.py", target=None)


def test_a_gap_is_found_and_no_gap_is_not(marks: Project) -> None:
    assert run(marks, "--fairness-rebaseline").ret == 0
    assert marks.read("baselines/marks.json")["items"].keys() == {"score[marks,group=women]"}
    assert verdicts(marks, "rows()") == {"score[marks,group=women]": "pass"}
    assert verdicts(marks, "rows(gap=20)") == {"score[marks,group=women]": "regression"}
    result = run(marks, "--fairness", "-v")
    assert says(result, "Answers for men have a higher mean score of marks")
    assert says(result, "women is at a disadvantage")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame(marks: Project, library: str) -> None:
    pytest.importorskip(library)
    run(marks, "--fairness-rebaseline")
    data = f"__import__({library!r}).DataFrame(rows(gap=20))"
    assert verdicts(marks, data) == {"score[marks,group=women]": "regression"}


def test_several_groups_give_the_worst_verdict(project: Project) -> None:
    test = TEST.replace(".name", '.name == "regression"')
    groups = 'groups=("men", "women", "others")'
    check(project, f"rows({groups})", TEST)
    run(project, "--fairness-rebaseline")
    found = verdicts(project, f"rows(gap=20, {groups})", test)
    assert found == {"score[marks,group=women]": "regression", "score[marks,group=others]": "pass"}


def test_pairs_are_compared_with_each_other(project: Project) -> None:
    """The pairs differ by far more than the groups do within a pair."""
    pairs = (
        '[{"group": group, "pair": pair, "score": 100 * pair + random.gauss(0, 1)}'
        ' for pair in range(12) for group in ("men", "women")]'
    )
    errors = []
    for data in (pairs, pairs.replace('"pair": pair, ', "")):
        check(project, data)
        (found,) = project.report("test_marks.py", "--fairness-measure", target=None)["items"]
        errors.append(found["standard_error"])
    assert errors[0] < 1
    assert errors[1] > 50


def test_scores_that_are_no_numbers_are_missing(marks: Project) -> None:
    run(marks, "--fairness-rebaseline")
    few = 'rows() + [{"group": "men", "score": bad} for bad in (None, float("nan"), "n/a")]'
    check(marks, few)
    (found,) = marks.report("test_marks.py", target=None)["items"]
    assert found["verdict"] == "pass"
    assert found["missing"] == {"women": 0, "men": 3}
    many = 'rows() + [{"group": "men", "score": float("nan")}] * 30'
    assert verdicts(marks, many) == {"score[marks,group=women]": "inconclusive"}


def test_equal_scores_never_pass_and_rare_events_do(marks: Project) -> None:
    test = TEST.replace("tolerance=8", "tolerance=0.1, limit=0.2")
    zeros = '[{"group": group, "score": 0} for group in ("men", "women") for _ in range(300)]'
    assert verdicts(marks, zeros, test) == {"score[marks,group=women]": "inconclusive"}
    # One in three hundred: too few for answers of a model, which would all be the same.
    assert verdicts(marks, f'{zeros} + [{{"group": "men", "score": 1}}] * 2', test) == {
        "score[marks,group=women]": "pass"
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('"marks", [{"group": "men"}], unmarked="men", tolerance=1', "row 1 has no 'score'; it has 'group'."),
        (
            '"marks", [{"sex": "men", "score": 1}], unmarked="men", tolerance=1',
            "row 1 has no 'group'; it has 'sex', 'score'.",
        ),
        (
            '"marks", [{"group": None, "score": 1}], unmarked="men", tolerance=1',
            "row 1 has no 'group'. Add the value",
        ),
        ('"marks", [("men", 1)], unmarked="men", tolerance=1', "Row 1 is not a dictionary: ('men', 1)."),
        ('"marks", rows(pair=1, stratum=1), unmarked="men", tolerance=1', "have both 'stratum' and 'pair'"),
        ('"marks", rows(), tolerance=1', "`unmarked`, the group with which all other groups are compared, is missing"),
        (
            '"marks", rows(), unmarked="man", tolerance=1',
            "is 'man', but no row has this group. Groups of the rows: 'men'",
        ),
        ('"marks", rows(groups=["men"]), unmarked="men", tolerance=1', "at least two groups are needed"),
        ('"marks", rows(), unmarked="men"', "scores need a `tolerance`, in the unit of the score"),
        ('"marks", {"men": 1}, unmarked="men", tolerance=1', "fairness_check takes a measurement of a corpus, or rows"),
        ('"marks", rows(size=5), unmarked="men", tolerance=1', "each group needs 8"),
    ],
)
def test_what_is_wrong(project: Project, call: str, message: str) -> None:
    project.write("test_marks.py", f"{HEADER}\ndef test_marks(fairness_check):\n    fairness_check({call})\n")
    result = run(project, "--fairness")
    assert result.ret == 1
    assert message in " ".join(result.stdout.str().split())


def test_a_score_of_a_corpus(project: Project) -> None:
    project.write(
        "test_marks.py",
        """
def test_length(corpus_generator, fairness_check):
    axes = {"name": {"unmarked": "Joseph", "marked": ["Kelly"]}}
    corpus = corpus_generator("Write to {name}.", axes=axes, trials=20)
    measured = corpus.score("name", "Kelly", scorer="words", tolerance=2)
    assert fairness_check("letters", measured, limit=5).name == "inconclusive"
""",
    )
    result = project.run("--fairness", "test_marks.py")
    assert result.ret == 0
    assert shows(result, "score[words,name=Kelly]")
    assert says(result, "all 40 scores are 5, so that they show no difference")
