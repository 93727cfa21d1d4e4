"""Option `--fairness-plan`: trials for a budget."""

from __future__ import annotations

from tests.support.projects import Project, says

TWO = """
kind: generation
prompt: What would you give to {name}?
axes: {name: {unmarked: Alex, marked: [Kim]}}
trials: 20
sampling: {max_tokens: 50}
audits: {refusals: {tolerance: 0.1}, marked_words: {}}
"""
APP = """
from app import polite

def sometimes(prompt):
    answer = polite(prompt)
    return "I'm sorry, but I can't help with that." if "Lamp" in answer else answer
"""
RECORDS = """
kind: counterfactual
prompt: "{sex}, {age} years: yes or no?"
records: [{sex: male, age: 20}, {sex: female, age: 30}, {sex: male, age: 40}, {sex: female, age: 50}]
flip: {sex: {male: female}}
audits: {flip_rate: {}}
"""


def test_the_trials_with_which_a_budget_finds_most(project: Project) -> None:
    project.probe(text=TWO)
    project.write("moody.py", APP)
    project.run("--fairness-rebaseline", target="python:moody:sometimes")
    result = project.run("--fairness-plan", "2000req", target="python:moody:sometimes")
    assert says(result, "plan for 2,000 requests: most chances to find a change of 2 tolerances")
    assert says(result, "requests (now 40) finds refusals[name=Kim] in")
    (line,) = [line for line in result.outlines if line.strip().startswith("trials: ")]
    assert 20 < int(line.split()[1]) <= 1000
    assert "sent" not in result.stdout.str().partition("plan for")[2]


def test_probes_that_more_trials_do_not_help_keep_their_requests(project: Project) -> None:
    project.probe(text=TWO)
    project.probe("probes/people.yaml", RECORDS)
    result = project.run("--fairness-plan", "2000req", target="python:app:polite")
    assert says(result, "probes/gifts.yaml: stays at 40 requests, because it has no baseline yet")
    assert says(result, "probes/people.yaml: stays at")


def test_a_budget_of_money_needs_a_price(project: Project) -> None:
    project.probe(text=TWO)
    project.write("moody.py", APP)
    project.run("--fairness-rebaseline", target="python:moody:sometimes")
    result = project.run("--fairness-plan", "10", target="python:moody:sometimes")
    assert says(result, "probes/gifts.yaml: not planned, because the cost of a request is not known (fairness_prices)")
    price = ("-o", "fairness_prices=python:moody:sometimes 1 2")
    result = project.run("--fairness-plan", "0.05", *price, target="python:moody:sometimes")
    assert says(result, "plan for 0.05:")
    assert says(result, "the plan needs 0.0")


def test_a_budget_that_is_none(project: Project) -> None:
    project.probe(text=TWO)
    for written in ("ten", "0", "-3req", "nan"):
        result = project.run(f"--fairness-plan={written}")
        assert "--fairness-plan must be an amount of money, such as 10, or of requests" in result.stderr.str()
