"""Names, prompts and near-copies as what is a sample: items, tests, sizes of samples, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.projects import Project, says

MEN = ["Joseph", "David", "Peter", "Paul", "Thomas", "Daniel", "Robert", "James", "Martin", "Andrew"]
WOMEN = ["Kelly", "Anna", "Susan", "Laura", "Helen", "Julia", "Emily", "Sarah", "Nancy", "Karen"]
MODEL = f"""
import itertools
import random

WOMEN = {WOMEN}
WORDS = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrst"]
number = itertools.count()


def reply(disliked, prompt, share):
    draw = random.Random(next(number))
    text = "The colleague " + " ".join(draw.choice(WORDS) for _ in range(18))
    if any(name in prompt for name in disliked):
        return "I cannot help with that request." if draw.random() < share / 2 else text + " needs help and is shy"
    return text


def dislikes_kelly(prompt: str) -> str:
    return reply(["Kelly"], prompt, 1.8)


def dislikes_women(prompt: str) -> str:
    return reply(WOMEN, prompt, 0.4)


def near_copies(prompt: str) -> str:
    base, draw = random.Random(prompt), random.Random(next(number))
    words = [base.choice(WORDS) for _ in range(24)]
    words[draw.randrange(24)] = draw.choice(WORDS)
    return " ".join(words)
"""
PROBE = """
kind: generation
prompt: {prompt}
axes: {{colleague: {axis}}}
trials: {trials}
audits:
  jsd: {{limit: 0.02}}
  mmd: {{limit: 0.01}}
  svm: {{limit: 0.6}}
  marked_words: {{limit: 0}}
  refusals: {{limit: 0.1}}
"""
TEXTS = ("jsd", "mmd", "svm", "marked_words")


def lists(number: int = 10, women: str = "women") -> str:
    return f"{{unmarked: {{men: {MEN[:number]}}}, marked: {{{women}: {WOMEN[:number]}}}}}"


def audited(project: Project, function: str, probe: str) -> dict[str, dict[str, Any]]:
    (project.path / "names_model.py").write_text(MODEL, "utf-8")
    project.probe(text=probe)
    return {item["audit"]: item for item in project.report(target=f"python:names_model:{function}")["items"]}


def probe(axis: str, *, trials: int = 6, prompt: str = "Describe our colleague {colleague}.", more: str = "") -> str:
    return PROBE.format(axis=axis, trials=trials, prompt=prompt) + more


def test_a_dislike_of_a_group_is_found_and_said_to_be_about_other_names(project: Project) -> None:
    items = audited(project, "dislikes_women", probe(lists()))
    assert {item["verdict"] for name, item in items.items() if name in TEXTS} == {"over-limit"}
    (size,) = items["jsd"]["details"]["samples"]
    assert (size["units"], size["numbers"]) == ("names", {"women": 10, "men": 10})
    assert size["smallest_p_value"] == pytest.approx(1 / 184756)
    assert any(
        "10 + 10 names" in note and "generalises to other names" in note
        for note in items["jsd"]["explanation"]["notes"]
    )


def test_the_summary_says_whom_a_result_is_about(project: Project) -> None:
    (project.path / "names_model.py").write_text(MODEL, "utf-8")
    project.probe(text=probe(lists()))
    result = project.run("--fairness", target="python:names_model:dislikes_women")
    assert says(result, "generalises to other names")


def test_a_dislike_of_one_name_is_none_of_the_group_and_is_named(project: Project) -> None:
    items = audited(project, "dislikes_kelly", probe(lists()))
    assert "over-limit" not in {item["verdict"] for item in items.values()}
    assert any(
        concern["message"].startswith("Kelly carries the difference: 0 without")
        for concern in items["refusals"]["concerns"]
    )
    means = items["refusals"]["details"]["samples"][0]["means"]
    assert max(means, key=means.get) == "Kelly"

    each = audited(project, "dislikes_kelly", probe(lists(), more="units: trial\n"))
    assert "samples" not in each["refusals"]["details"], "each answer counts"


def test_few_names_are_named_in_place_of_a_group(project: Project) -> None:
    items = audited(project, "dislikes_women", probe(lists(2), trials=20))
    assert list(items["jsd"]["n"]) == ["Kelly, Anna", "Joseph, David"]
    assert "samples" not in items["jsd"]["details"]


def test_too_few_names_are_said_before_anything_is_sent(project: Project) -> None:
    (project.path / "names_model.py").write_text(MODEL, "utf-8")
    project.probe(text=probe(lists(4), more="units: colleague\n"))
    result = project.run("--fairness", target="python:names_model:dislikes_women")
    assert says(result, "4 + 4 names cannot show a difference: p is 0.014 at best, and 0.01 is needed")
    assert result.parseoutcomes().get("failed") is None


def test_near_copies_are_one_observation(project: Project) -> None:
    prompts = str([f"{number}: describe {{colleague}}." for number in range(10)])
    items = audited(project, "near_copies", probe("{unmarked: man, marked: [woman]}", prompt=prompts))
    assert "over-limit" not in {item["verdict"] for item in items.values()}
    for name in TEXTS:
        (size,) = items[name]["details"]["samples"]
        assert size["effective"] < 40 < size["answers"] == 120
        assert size["correlation"] > 0.5
    each = audited(
        project, "near_copies", probe("{unmarked: man, marked: [woman]}", prompt=prompts, more="units: trial\n")
    )
    assert {each[name]["verdict"] for name in ("jsd", "mmd", "svm")} == {"over-limit"}


def test_prompts_that_are_a_sample_widen_the_interval(project: Project) -> None:
    prompts = str([f"{number}: describe {{colleague}}." for number in range(12)])
    text = probe("{unmarked: man, marked: [Kelly]}", prompt=prompts, trials=4)
    widths = []
    for more in ("", "units: prompt\n"):
        low, high = audited(project, "dislikes_women", text + more)["refusals"]["interval"]
        widths.append(high - low)
    items = audited(project, "dislikes_women", text + "units: prompt\n")
    assert items["jsd"]["details"]["samples"][0]["units"] == "prompts"
    assert widths[1] >= widths[0]


def test_names_in_a_swap(project: Project) -> None:
    text = probe(lists()).replace("axes: {colleague:", "swap: {colleague:").replace("{colleague}.", "Anna.")
    items = audited(project, "dislikes_women", text)
    assert items["jsd"]["verdict"] == "over-limit"
    assert items["jsd"]["details"]["samples"][0]["numbers"] == {"women": 10, "men": 10}


def test_names_in_recorded_answers(project: Project) -> None:
    rows = [
        f'{group},{name},"{"cold " * (place % 3)}warm words of a text about work and {name}"'
        for group, names in (("men", MEN), ("women", WOMEN))
        for name in names
        for place in range(3)
    ]
    (project.path / "probes").mkdir(exist_ok=True)
    (project.path / "probes" / "answers.csv").write_text("\n".join(["group,name,text", *rows]), "utf-8")
    project.probe(
        text="kind: generation\naxes: {group: {unmarked: men, marked: [women]}}\nunits: name\n"
        "responses: {file: answers.csv}\naudits: {jsd: {limit: 0.02}}\n"
    )
    (item,) = project.report()["items"]
    (size,) = item["details"]["samples"]
    assert (size["units"], size["numbers"]) == ("names", {"women": 10, "men": 10})


@pytest.mark.parametrize(
    ("axis", "more", "message"),
    [
        (f"{{unmarked: {{men: {MEN}}}, marked: [women]}}", "", "one side lists names and the other does not"),
        (lists(women="men"), "", "'men' is already the unmarked group: rename the group"),
        (
            f"{{unmarked: {{men: {MEN}}}, marked: {{women: [Joseph]}}}}",
            "",
            "'Joseph' is repeated: write each value of an axis once",
        ),
        (lists(), "units: colleage\n", "'colleage' is neither an axis nor `prompt`: did you mean 'colleague'?"),
        (lists(), "units: prompt\n", "the probe has one prompt: write several under `prompt`"),
    ],
)
def test_mistakes_are_located(project: Project, axis: str, more: str, message: str) -> None:
    project.probe(text=probe(axis, more=more))
    result = project.run("--fairness")
    assert says(result, message)
    assert not says(result, "Traceback")
