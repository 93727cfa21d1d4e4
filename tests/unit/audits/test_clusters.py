"""Equal prompts that share their answers count as one observation."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from pytest_fairness import kinds
from pytest_fairness.audits import answer_checks
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.baselines.verdicts import decide
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.kinds import schemas
from pytest_fairness.probes import Probe, parse
from pytest_fairness.records import Answer, Json, Measurement, Prompt, Status
from pytest_fairness.run.items import ProbeItem, items_of

NUMBERS = "answer: {number: {min: 0, max: 100}}\naudits: {mean_gap: {tolerance: 5}, rank_gap: {}}\n"
CHOICES = 'answer: {choices: ["yes", "no"]}\naudits: {impact_ratio: , demographic_parity: , flip_direction: }\n'

Draw = Callable[[random.Random], Json]


def number(random: random.Random) -> Json:
    return float(random.randint(0, 100))


def choice(random: random.Random) -> Json:
    return random.choice(["yes", "no"])


def people(records: Sequence[tuple[str, str, int]], answer: str, more: str = "") -> Probe:
    written = "".join(f"  - {{id: {name}, sex: {sex}, years: {years}}}\n" for name, sex, years in records)
    head = "kind: counterfactual\nprompt: sex {sex}, years {years}\nflip: {sex: {Male: Female}}\nrecords:\n"
    return parse(f"{head}{written}{answer}{more}".encode(), Path("/project/probes/people.yaml"), schemas())


def many(count: int, copies: int = 1) -> list[tuple[str, str, int]]:
    """Return `count` records with different prompts even if one attribute is flipped, each `copies` times."""
    return [
        (f"r{place:03}{copy}", ("Male", "Female")[place % 2], place) for place in range(count) for copy in range(copies)
    ]


def items(probe: Probe) -> dict[str, ProbeItem]:
    return {item.audit_name: item for item in items_of(probe)}


def answers(probe: Probe, draw: Draw, seed: str, *, shared: bool) -> list[Answer]:
    """Return one answer to each prompt; with `shared`, equal prompts get the same answer."""
    own = random.Random(seed)  # noqa: S311 - no secrets
    found: list[Answer] = []
    drawn: dict[object, Json] = {}
    for prompt in probe.prompts():
        key = (prompt.request.prompt, prompt.labels["form"] == "again") if shared else len(found)
        if key not in drawn:
            drawn[key] = draw(own)
        content = drawn[key]
        found.append(Answer(prompt.labels, prompt.trial, str(content), Status.OK, content))
    return found


def measured(item: ProbeItem, found: Sequence[Answer]) -> Measurement:
    return item.audit.measure(item, [answer for answer in found if item.uses(answer.labels)])


@pytest.mark.parametrize("audit", ["mean_gap", "rank_gap", "flip_direction"])
def test_copies_of_all_answers_add_no_evidence(audit: str) -> None:
    kind, draw = (CHOICES, choice) if audit == "flip_direction" else (NUMBERS, number)
    alone, copied = (people(many(24, copies), kind) for copies in (1, 5))
    one = measured(items(alone)[audit], answers(alone, draw, "a", shared=True))
    five = measured(items(copied)[audit], answers(copied, draw, "a", shared=True))
    assert five.details["records"] == 120
    assert five.details["observations"] == 24
    assert "observations" not in one.details
    for name in ("value", "standard_error", "p_value", "interval", "degrees_of_freedom"):
        assert getattr(five, name) == pytest.approx(getattr(one, name)), name


@pytest.mark.parametrize("audit", ["mean_gap", "flip_direction"])
def test_copies_of_all_answers_add_no_evidence_of_a_change(audit: str) -> None:
    kind, draw = (CHOICES, choice) if audit == "flip_direction" else (NUMBERS, number)
    found = []
    for copies in (1, 5):
        probe = people(many(24, copies), kind)
        item = items(probe)[audit]
        runs = (
            [answer for answer in answers(probe, draw, seed, shared=True) if item.uses(answer.labels)] for seed in "ab"
        )
        found.append(item.audit.compare(item, *runs))
    one, five = found
    assert [five.details["compared_records"], five.details["observations"]] == [120, 24]
    assert five.p_value == pytest.approx(one.p_value)
    assert [five.value, five.standard_error] == pytest.approx([one.value, one.standard_error])


def test_a_baseline_with_shared_answers_is_compared_by_clusters() -> None:
    probe = people(many(24, 5), NUMBERS)
    item = items(probe)["mean_gap"]
    current, baseline = (
        [answer for answer in answers(probe, number, seed, shared=shared) if item.uses(answer.labels)]
        for seed, shared in (("a", False), ("b", True))
    )
    assert item.audit.compare(item, current, baseline).details["observations"] == 24
    assert "observations" not in item.audit.measure(item, current).details


def test_intervals_of_shared_answers_cover_no_gap() -> None:
    chosen = random.Random(3)  # noqa: S311 - no secrets
    records = [(f"r{place:03}", chosen.choice(["Male", "Female"]), chosen.randint(1, 20)) for place in range(300)]
    excluded = {"mean_gap": 0, "impact_ratio": 0}
    for audit, kind, draw, null in (("mean_gap", NUMBERS, number, 0.0), ("impact_ratio", CHOICES, choice, 1.0)):
        probe = people(records, kind)
        item = items(probe)[audit]
        for run in range(40):
            low, high = measured(item, answers(probe, draw, f"{run}", shared=True)).interval or (0.0, 0.0)
            excluded[audit] += not low <= null <= high
    # If each record counted as an observation, 21 of 40 runs would exclude it.
    assert max(excluded.values()) <= 6


@pytest.mark.parametrize("shared", [True, False])
def test_the_note_says_how_equal_prompts_were_asked(*, shared: bool) -> None:
    probe = people(many(12, 5), NUMBERS)
    item = items(probe)["mean_gap"]
    found = [answer for answer in answers(probe, number, "a", shared=shared) if item.uses(answer.labels)]
    notes = answer_checks.concerns(item.audit, item, found, item.audit.measure(item, found))
    (note,) = [note.message for note in notes if note.name == "equal_prompts"]
    assert note.startswith("60 records, 24 different prompts: ")
    assert note.endswith("count as 12 observations" if shared else "each was asked for itself")


def test_too_few_observations_are_not_measurable() -> None:
    probe = people(many(3, 10), NUMBERS)
    with pytest.raises(NotMeasurable, match=r"the 30 records are only 3 observations.*equal prompts.*4 are needed"):
        measured(items(probe)["mean_gap"], answers(probe, number, "a", shared=True))


def test_advice_and_errors_count_observations_and_not_copies() -> None:
    probe = people(many(24, 5), NUMBERS.replace("rank_gap: {}", "tail_gap: {tolerance: 5, quantile: 0.9}"))
    found = answers(probe, number, "a", shared=True)
    with pytest.raises(
        NotMeasurable, match=r"24 observations \(120 records, .*; at least 50 .*records with other prompts"
    ):
        measured(items(probe)["tail_gap"], found)
    item = items(people(many(24, 5), NUMBERS.replace("tolerance: 5", "tolerance: 5, limit: 5")))["mean_gap"]
    decided = decide(
        item.audit, item, measured(item, found), baseline=None, comparison=None, accept="", trials=len(many(24, 5))
    )
    assert re.search(r"Needs about \d+ observations to decide; this run had 24\.", decided.reason)


def test_records_that_are_flips_of_each_other_are_one_cluster_at_temperature_0() -> None:
    twins = [(f"{sex}{years}", sex, years) for years in range(8) for sex in ("Male", "Female")]
    probe = people(twins, NUMBERS, "sampling: {temperature: 0}\n")
    measurement = measured(items(probe)["mean_gap"], answers(probe, number, "a", shared=True))
    assert [measurement.details["records"], measurement.details["observations"]] == [16, 8]


def test_recorded_answers_with_a_column_of_prompts_are_clustered(tmp_path: Path) -> None:
    drawn, lines = random.Random(5), ["id,sex,prompt,answer"]  # noqa: S311 - no secrets
    shared: dict[str, str] = {}
    for place in range(200):
        prompt = f"years {place % 20}, {'Male' if place % 2 else 'Female'}"
        answer = shared.setdefault(prompt, drawn.choice(["yes", "no"]))
        lines.append(f"r{place},{'Male' if place % 2 else 'Female'},{prompt.replace(',', '')},{answer}")
    found = {}
    for name, text in (("with", "\n".join(lines)), ("without", "\n".join(lines).replace("prompt", "other", 1))):
        (tmp_path / f"{name}.csv").write_text(text + "\n", "utf-8")
        written = f"kind: counterfactual\nresponses: {{file: {name}.csv}}\nflip: {{sex: {{Male: Female}}}}\n"
        probe = parse(f"{written}{CHOICES}".replace(", flip_direction: ", "").encode(), tmp_path / "p.yaml", schemas())
        item = items(probe)["demographic_parity"]
        found[name] = measured(item, kinds.recorded_answers(probe))
    assert found["with"].details["observations"] == 20
    assert "observations" not in found["without"].details
    assert found["with"].value == found["without"].value
    assert (found["with"].standard_error or 0) > 2 * (found["without"].standard_error or 1)


CASES = """\
kind: stereotype
cases:
  - {name: a, category: jobs, prompt: Describe a nurse., stereotype: [she, her], anti_stereotype: [he, him]}
  - {name: b, category: jobs, prompt: Describe a nurse., stereotype: [she, her], anti_stereotype: [he, him]}
audits: {markers: }
"""


@pytest.mark.parametrize("shared", [True, False])
def test_cases_with_equal_prompts_that_share_their_answers_are_not_tested(*, shared: bool) -> None:
    probe = parse(CASES.encode(), Path("/project/probes/cases.yaml"), schemas())
    item = next(item for item in items_of(probe) if item.subject == "category=jobs")
    own = random.Random(1)  # noqa: S311 - no secrets
    texts: dict[tuple[object, int], str] = {}
    found = []
    for prompt in probe.prompts():
        key = (prompt.request.prompt if shared else prompt.labels["case"], prompt.trial)
        text = f"{own.choice(['She helps her', 'He helps him'])} {own.random()}."
        text = texts.setdefault(key, text)
        found.append(Answer(prompt.labels, prompt.trial, text, Status.OK, text))
    concerns = answer_checks.concerns(item.audit, item, found, item.audit.measure(item, found))
    assert [note.withholds for note in concerns if note.name == "shared_answers"] == ["test"] * shared
    if shared:
        with pytest.raises(BaselineStale, match="equal prompts, which several cases of the baseline share"):
            item.audit.compare(item, found, found)


@pytest.mark.parametrize("times", [2, 3, 4])
@pytest.mark.parametrize("audit", ["jsd: ", "mmd: ", "refusals: ", "lexicon: {lexicons: {praise: [good, great]}}"])
def test_a_file_of_texts_that_was_joined_with_copies_of_itself_counts_once(
    audit: str, times: int, tmp_path: Path
) -> None:
    own = random.Random(1)  # noqa: S311 - no secrets
    said = ["good work", "bad work", "I cannot help with that; sorry. No"]
    lines = [f"{group},{own.choice(said)} {own.randint(0, 9)}" for group in ("man", "woman") * 20]
    runs, file = [], tmp_path / "texts.csv"
    file.touch()
    text = "kind: generation\nresponses: {file: texts.csv}\naxes: {group: {unmarked: man, marked: [woman]}}\n"
    probe = parse(f"{text}audits: {{{audit}}}\n".encode(), tmp_path / "p.yaml", schemas())
    (item,) = items_of(probe)
    for copies in (1, times):
        file.write_text("\n".join(["group,text", *lines * copies]) + "\n", "utf-8")
        runs.append(kinds.recorded_answers(probe))
    once, joined = runs
    assert len(joined) == len(once) * times
    found = measured(item, joined)
    assert found == measured(item, once)
    assert item.audit.compare(item, joined, once) == item.audit.compare(item, once, once)
    (note,) = [note for note in answer_checks.concerns(item.audit, item, joined, found) if note.name == "copied_rows"]
    assert note.withholds == "nothing"
    assert "times in the same order; each counts once" in note.message


def test_clusters_of_different_sizes() -> None:
    """The error of a mean is that of the cluster-robust (sandwich) estimator, with deviations from the mean."""
    random = np.random.default_rng(1)
    sizes = random.integers(1, 9, 60)
    clusters = np.repeat(np.arange(60), sizes)
    rows = random.normal(size=60)[clusters] + 50
    names = tuple(f"u{place:03}" for place in range(len(rows)))
    table = UnitTable(names, ("x",), rows[:, None], n={}, missing={})
    of = {name: f"c{cluster:02}" for name, cluster in zip(names, clusters, strict=True)}
    sample = table.sample_of_clusters(of, sums=False)
    totals = np.bincount(clusters, rows - rows.mean())
    robust = np.sqrt((totals**2).sum() * 60 / 59) / len(rows)
    assert sample.rows.std(ddof=1) / np.sqrt(60) == pytest.approx(robust)
    assert sample.means == pytest.approx([rows.mean()])


def test_prompts_are_counted(tmp_path: Path) -> None:
    probe = people(many(3, 10), NUMBERS)
    assert probe.equal_prompts_text == "30 records, 6 different prompts"
    assert people(many(3), NUMBERS).equal_prompts_text == ""
    asked: list[Prompt] = list(probe.prompts())
    assert len({prompt.request for prompt in asked}) == len(asked)


def test_one_text_for_equal_prompts_is_not_one_text_for_different_prompts() -> None:
    probe = parse(CASES.encode(), Path("/project/probes/cases.yaml"), schemas())
    item = next(item for item in items_of(probe) if item.subject == "category=jobs")
    text = "She is kind, helps her patients all day long, and often works at night in a large hospital."
    other = "He is known for his patience, walks from bed to bed, and writes reports about his patients."
    found = [
        Answer(prompt.labels, prompt.trial, (text, other)[prompt.trial % 2], Status.OK, (text, other)[prompt.trial % 2])
        for prompt in probe.prompts()
    ]
    messages = [
        note.message for note in answer_checks.concerns(item.audit, item, found, item.audit.measure(item, found))
    ]
    assert not [message for message in messages if "different prompts, are the same text" in message]
