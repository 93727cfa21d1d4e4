"""The audits of recommended lists, on lists that are fair or biased by a known amount."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_fairness.audits import registry
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.errors import BaselineStale, NotMeasurable, ProbeError
from pytest_fairness.records import Answer, Evidence, Measurement, Pair, Status, Verdict
from pytest_fairness.stats import gaps
from pytest_fairness.stats.ranked_lists import similarities
from tests.support.listeners import RELIGIONS, K, attribute, item, probe, run

PROBE = probe()
SENSITIVITY = ("snsr", "snsv", "pafs")


def measure(
    name: str, answers: list[Answer], subject: str | None = "religion", of: Any = PROBE, **settings: Any
) -> Measurement:
    audit, about = registry.get("recommendation", name), item(name, subject, of=of, **settings)
    return audit.measure(about, [each for each in answers if audit.uses(about, each.labels)])


def phrase_of(name: str, measurement: Measurement, subject: str | None = "religion", of: Any = PROBE) -> str:
    return registry.get("recommendation", name).explanation(item(name, subject, of=of), measurement).phrase


def judge(
    name: str,
    current: list[Answer],
    baseline: list[Answer] | None = None,
    subject: str | None = "religion",
    of: Any = PROBE,
    **settings: Any,
) -> Verdict:
    audit, about = registry.get("recommendation", name), item(name, subject, of=of, **settings)
    runs = [[each for each in answers if audit.uses(about, each.labels)] for answers in (current, baseline or [])]
    measurement = audit.measure(about, runs[0])
    return decide(
        audit,
        about,
        measurement,
        baseline=BaselineEntry(audit.measure(about, runs[1]).value) if baseline else None,
        comparison=audit.compare(about, *runs) if baseline else None,
        trials=measurement.details["entities"],
        accept="pytest --fairness-rebaseline",
    )


def test_of_equally_sure_pairs_the_one_that_differs_most_is_named() -> None:
    audit, about = registry.get("recommendation", "snsr"), item("snsr", "religion")
    measured = audit.measure(about, [each for each in run(0) if audit.uses(about, each.labels)])
    near, far = (
        Pair(groups, "", value, (value - 0.02, value + 0.02), 1e-6)
        for groups, value in ((("a Jew", "a Hindu"), 0.1), (("a Jew", "a Muslim"), -0.3))
    )
    found = replace(
        measured, value=0.3, interval=(0.28, 0.32), standard_error=0.01, pairs=(near, far), evidence=Evidence()
    )
    assert audit.rule.judge_value(audit, about, found, 0.05, 0.05).pair == far


def refused(answers: Sequence[Answer], value: str, status: Status = Status.REFUSED, share: float = 1.0) -> list[Answer]:
    random = np.random.default_rng(0)
    return [
        replace(each, status=status, content=None)
        if each.labels["value"] == value and random.random() < share
        else each
        for each in answers
    ]


@pytest.mark.parametrize("name", SENSITIVITY)
def test_thirty_percent_other_items_for_one_value_are_a_regression_at_thirty_entities(name: str) -> None:
    for seed in range(5):
        verdict = judge(name, run(seed, other=0.3), run(100 + seed))
        assert verdict.name == "regression"
        assert "Top contributors: Muslim" in verdict.reason


@pytest.mark.parametrize("harmed", ["a young", "an old"])
def test_the_reason_names_the_one_of_two_values_that_changed(harmed: str) -> None:
    ages: dict[str, Any] = {"attribute": "age", "values": ("a young", "an old"), "harmed": harmed}
    verdict = judge("snsr", run(1, other=0.4, **ages), run(2, **ages), "age")
    assert verdict.name == "regression"
    assert f"Top contributors: {harmed} 0." in verdict.reason


@pytest.mark.parametrize(("name", "pairs"), [("snsr", 65), ("snsv", 35), ("pafs", 35)])
def test_no_comparison_of_the_same_system_fails(name: str, pairs: int) -> None:
    runs = [[run(number, entities=10, noise=0.4) for number in (seed, 10_000 + seed)] for seed in range(pairs)]
    assert not any(judge(name, current, baseline).name.outcome == "failed" for current, baseline in runs)


@pytest.mark.parametrize("name", SENSITIVITY)
def test_an_unchanged_bias_is_over_a_limit_but_no_regression(name: str) -> None:
    current, baseline = run(1, other=0.4), run(2, other=0.4)
    assert judge(name, current, baseline).name.outcome != "failed"
    limit = {"snsr": 0.05, "snsv": 0.02, "pafs": 0.97}[name]
    assert judge(name, current, limit=limit).name == "over-limit"
    assert judge(name, run(3), limit=limit).name != "over-limit"


def test_a_limit_of_zero_is_not_exceeded_by_sampling_noise() -> None:
    verdicts = {judge("snsr", run(seed, noise=0.4), limit=0.0).name.value for seed in range(30)}
    assert verdicts == {"inconclusive"}


def test_snsr_snsv_and_pafs_follow_from_the_same_means() -> None:
    found = {name: measure(name, run(1, other=0.3)) for name in SENSITIVITY}
    means = np.array([found["snsr"].details["similarity"][value]["mean"] for value in RELIGIONS])
    assert found["snsr"].value == pytest.approx(np.ptp(means))
    assert found["snsv"].value == pytest.approx(means.std())
    assert found["pafs"].value == pytest.approx(1 - np.abs(means - means.mean()).mean())
    assert found["pafs"].details["mean_similarity"] == pytest.approx(means.mean())
    for measurement in found.values():
        worst, floor = measurement.details["worst"], measurement.details["noise_floor"]
        assert (worst["value"], worst["p_value"] < 0.01, worst["effect"] < -0.1) == ("Muslim", True, True)
        assert measurement.p_value is not None
        assert measurement.p_value < 0.01
        assert floor["mean"] == pytest.approx(means[:3].mean(), abs=0.05)
        assert measurement.interval is not None
        assert measurement.interval[0] < measurement.value < measurement.interval[1]


@pytest.mark.parametrize("name", [*SENSITIVITY, "shortfall"])
def test_numbers_depend_neither_on_the_order_of_answers_nor_on_the_names_of_entities(name: str) -> None:
    answers = run(1, other=0.2)
    shuffled = [answers[index] for index in np.random.default_rng(0).permutation(len(answers))]
    assert measure(name, answers) == measure(name, shuffled)
    # Renamed so that their order stays: resampling draws entities by their place.
    renamed = [replace(each, labels={**each.labels, "entity": f"x {each.labels['entity']}"}) for each in answers]
    one, other = measure(name, answers), measure(name, renamed)
    assert (one.value, one.interval, one.p_value) == (other.value, other.interval, other.p_value)
    mirrored = [
        replace(each, labels={**each.labels, "entity": f"{999 - int(each.labels['entity'][-3:])}"}) for each in answers
    ]
    assert measure(name, mirrored).value == pytest.approx(one.value)


@pytest.mark.parametrize("name", [*SENSITIVITY, "shortfall"])
def test_a_run_compared_with_itself_has_not_changed(name: str) -> None:
    audit, answers = registry.get("recommendation", name), run(1)
    comparison = audit.compare(item(name), answers, answers)
    assert (comparison.value, comparison.p_value) == (0, 1)
    assert (comparison.interval == (0, 0)) == (name != "shortfall")


def test_further_trials_for_uncertainty_change_no_other_measurement() -> None:
    answers = run(1, neutral_trials=6)
    fewer = [each for each in answers if each.labels["attribute"] != "neutral" or each.trial < 2]
    assert measure("snsr", answers) == measure("snsr", fewer)


def test_runs_with_different_numbers_of_trials_are_compared_at_equal_numbers() -> None:
    assert judge("snsr", run(1, trials=3), run(2)).name.outcome != "failed"
    assert judge("snsr", run(1, trials=3, other=0.4), run(2)).name == "regression"


@pytest.mark.parametrize("name", ["snsr", "shortfall"])
def test_all_trials_of_the_baseline_count_for_two_values(name: str) -> None:
    ages: dict[str, Any] = {"attribute": "age", "values": ("a young", "an old"), "noise": 0.4}
    audit, about = registry.get("recommendation", name), item(name, "age")
    ratios = []
    for seed in range(4):
        current, baseline = run(seed, **ages), run(100 + seed, trials=10, neutral_trials=10, **ages)
        if name == "shortfall":
            current, baseline = (refused(run, "an old", share=0.4) for run in (current, baseline))
        first = [each for each in baseline if each.trial < (1 if each.labels["value"] else 2)]
        errors = [audit.compare(about, current, of).standard_error or 0.0 for of in (baseline, first)]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) == pytest.approx(0.74, abs=0.08)


def test_the_trials_of_ranges_of_several_values_and_of_entropies_are_cut_to_equal_numbers() -> None:
    for name, subject in (("snsr", "religion"), ("snsv", "religion"), ("uncertainty", None)):
        audit, about = registry.get("recommendation", name), item(name, subject)
        current, baseline = run(1, trials=2), run(2, trials=6, neutral_trials=2)
        first = [each for each in baseline if each.trial < 2]
        runs = [[each for each in answers if audit.uses(about, each.labels)] for answers in (current, baseline, first)]
        assert audit.compare(about, *runs[:2]) == audit.compare(about, runs[0], runs[2])


def test_unshared_entities_are_reported_and_too_many_make_the_baseline_stale() -> None:
    audit, about = registry.get("recommendation", "snsr"), item("snsr")
    comparison = audit.compare(about, run(1, entities=27), run(2, entities=30))
    assert comparison.details["only_in_baseline"] == ["artist 027", "artist 028", "artist 029"]
    assert comparison.details["only_now"] == []
    assert comparison.details["compared_entities"] == 27
    with pytest.raises(BaselineStale) as raised:
        audit.compare(about, run(1, entities=23), run(2, entities=30))
    assert raised.value.parts == ("list of entities",)


def test_a_value_that_is_always_refused_is_a_shortfall() -> None:
    answers = refused(run(1), "Muslim")
    assert judge("shortfall", answers, run(2)).name == "regression"
    assert judge("shortfall", answers, limit=0.1).name == "over-limit"
    details = measure("shortfall", answers).details
    assert details["by_value"]["Muslim"] == {"asked": 30 * K, "returned": 0, "refused": 30, "unreadable": 0}
    assert details["worst"]["value"] == "Muslim"
    ages: dict[str, Any] = {"attribute": "age", "values": ("a young", "an old")}
    with pytest.raises(
        NotMeasurable, match=r"only 0 entities have lists for at least two values; .* 30 of 30 for an old"
    ):
        measure("snsr", refused(run(1, **ages), "an old"), "age")


@pytest.mark.parametrize("name", SENSITIVITY)
@pytest.mark.parametrize("entities", [0, 3])
def test_a_value_with_too_few_lists_is_listed_and_does_not_touch_the_others(name: str, entities: int) -> None:
    def without_hindu(answers: list[Answer], kept: int) -> list[Answer]:
        few = f"artist {kept:03}"
        return [each for each in answers if each.labels["value"] != "Hindu" or each.labels["entity"] < few]

    three = tuple(value for value in RELIGIONS if value != "Hindu")
    of = probe(attributes={"religion": attribute("religion", three)})
    current, baseline = run(1, other=0.4), run(2)
    found = measure(name, without_hindu(current, entities))
    alone = measure(name, without_hindu(current, 0), of=of)
    assert (found.value, found.interval, found.p_value) == (alone.value, alone.interval, alone.p_value)
    assert found.details["similarity"] == alone.details["similarity"]
    assert found.details["too_few"]["Hindu"]["entities"] == entities
    limit = {"snsr": 0.05, "snsv": 0.02, "pafs": 0.97}[name]
    assert judge(name, without_hindu(current, entities), limit=limit).name == "over-limit"
    assert judge(name, without_hindu(current, entities), baseline).name == "regression"
    assert judge(name, current, without_hindu(baseline, entities)).name == "regression"
    audit, about = registry.get("recommendation", name), item(name)
    (note,) = audit.concerns(about, without_hindu(current, entities), found)
    assert (note.withholds, f"Hindu ({entities} entities)" in note.message) == ("nothing", True)


def test_each_two_values_have_a_row_with_interval_and_p_value() -> None:
    found = measure("snsr", run(1, other=0.3))
    assert [pair.groups for pair in found.pairs] == list(combinations(RELIGIONS, 2))
    assert all((pair.p_value < 0.01) == ("Muslim" in pair.groups) for pair in found.pairs)
    assert max(abs(pair.value) for pair in found.pairs) == pytest.approx(found.value)
    assert found.p_value == min(pair.p_value for pair in found.pairs)
    assert all(pair.interval[0] < pair.value < pair.interval[1] for pair in found.pairs)


def test_a_noisy_value_does_not_hide_that_the_gap_of_two_others_grew() -> None:
    def noisy(answers: list[Answer], seed: int) -> list[Answer]:
        random = np.random.default_rng(seed)
        return [
            replace(each, content=[*each.content[:kept], *(f"rarity {n}" for n in range(K - kept))])
            if each.labels["value"] == "Hindu" and (kept := int(random.integers(2, K)))
            else each
            for each in answers
        ]

    judged = [judge("snsr", noisy(run(seed, other=0.2), seed), noisy(run(100 + seed), 100 + seed)) for seed in range(6)]
    assert sum(verdict.name == "regression" for verdict in judged) >= 5
    assert any("the gap between" in verdict.reason and "Muslim" in verdict.reason for verdict in judged)


def test_a_value_with_few_lists_does_not_hide_the_difference_of_two_others() -> None:
    noisy = [
        replace(each, content=[*each.content[:12], *(f"rarity {n}" for n in range(13))])
        if each.labels["value"] == "Hindu" and int(each.labels["entity"][-3:]) % 2
        else each
        for each in run(1, other=0.15, noise=0.1)
        if each.labels["value"] != "Hindu" or each.labels["entity"] < "artist 008"
    ]
    found = measure("snsr", noisy)
    assert (found.details["similarity"]["Hindu"]["entities"], found.details["entities"]) == (8, 30)
    assert found.details["worst"]["value"] == "Muslim"
    assert found.p_value is not None
    assert found.p_value < 0.001
    assert judge("snsr", noisy, limit=0.05).name == "over-limit"


def test_missing_lists_of_unusual_entities_are_no_difference() -> None:
    def songs(each: Answer) -> Answer:
        unusual = each.labels["entity"] < "artist 015" and each.labels["attribute"] != "neutral"
        return replace(each, content=[*each.content[:8], *(f"rarity {n}" for n in range(17))]) if unusual else each

    answers = [songs(each) for each in run(1, noise=0.05)]
    kept = [each for each in answers if each.labels["value"] != "Muslim" or each.labels["entity"] < "artist 020"]
    assert measure("snsr", answers).value < 0.03
    assert measure("snsr", kept).value < 0.03


@pytest.mark.parametrize("name", SENSITIVITY)
def test_a_value_that_is_often_refused_does_not_pass(name: str) -> None:
    assert judge(name, refused(run(1), "Muslim", share=0.5), run(2)).name != "pass"


def test_failed_requests_are_missing_answers_and_no_shortfall() -> None:
    measurement = measure("shortfall", refused(run(1), "Muslim", Status.FAILED, share=0.5))
    assert measurement.value < 0.02
    assert measurement.missing["Muslim"] > 5


def test_short_lists_are_a_shortfall() -> None:
    answers = [
        replace(each, content=each.content[:15]) if each.labels["value"] == "Hindu" else each
        for each in run(1, noise=0.0)
    ]
    measurement = measure("shortfall", answers)
    assert measurement.value == pytest.approx(0.4)
    assert measurement.details["by_value"]["Hindu"]["returned"] == 30 * 15
    assert "40% for Hindu" in phrase_of("shortfall", measurement)


def test_a_fair_system_passes_except_in_a_run_that_is_too_small() -> None:
    fair = run(1, noise=0.0), run(2, noise=0.0)
    assert judge("shortfall", *fair).name == "pass"
    small = run(1, entities=5, noise=0.0)
    verdict = judge("snsr", small, small)
    assert verdict.name == "inconclusive"
    assert "Needs about 7 entities to decide; this run had 5." in verdict.reason


def test_too_few_entities_and_single_values_are_not_measurable() -> None:
    with pytest.raises(NotMeasurable, match="only 3 entities"):
        measure("snsr", run(1, entities=3))
    single = probe(attributes={"religion": attribute("religion", ["Hindu"])})
    with pytest.raises(NotMeasurable, match="only one value"):
        measure("snsr", run(1), of=single)


def test_results_by_domain() -> None:
    answers = [
        replace(each, labels={**each.labels, "domain": "rock" if each.labels["entity"] < "artist 015" else "pop"})
        for each in run(1, other=0.3)
    ]
    domains = measure("snsr", answers).details["by_domain"]
    assert {name: part["entities"] for name, part in domains.items()} == {"rock": 15, "pop": 15}
    for part in domains.values():
        assert part["value"] == pytest.approx(np.ptp(list(part["similarity"].values())))


def test_entropy_of_neutral_lists_and_between_values() -> None:
    steady = run(1, noise=0.0, trials=10, neutral_trials=10)
    measurement = measure("uncertainty", steady, None)
    assert measurement.value == pytest.approx(np.log2(K))
    assert measurement.details["instability"] == pytest.approx(0, abs=1e-9)
    assert measurement.p_value is None
    unsteady = run(2, noise=0.4, trials=10, neutral_trials=10)
    assert measure("uncertainty", unsteady, None).details["instability"] > 0.1
    assert judge("uncertainty", unsteady, steady, None).name == "regression"
    assert judge("uncertainty", unsteady, run(3, noise=0.4, neutral_trials=10), None).name == "pass"
    biased = run(2, noise=0.2, other=0.3, trials=10, neutral_trials=10)
    between = measure("uncertainty", biased)
    assert between.details["worst"]["value"] == "Muslim"
    assert between.p_value is not None
    assert between.p_value < 0.01
    fewer = run(4, noise=0.2, trials=5, neutral_trials=5)
    assert judge("uncertainty", biased, fewer).name == "regression"


def test_single_lists_have_no_entropy() -> None:
    with pytest.raises(NotMeasurable, match="two usable lists"):
        measure("uncertainty", run(1, neutral_trials=1), None)


def test_robustness_of_neutral_lists() -> None:
    clean, same = run(1), run(2, perturbation="typo")
    changed = run(3, noise=0.8, perturbation="typo", other=0.2)
    one, other = (measure("robustness", clean + part, "typo") for part in (same, changed))
    floor = one.details["noise_floor"]["mean"]
    assert one.value == pytest.approx(floor, abs=0.05)
    assert other.value < floor - 0.1
    assert other.details["compared"] == "neutral"
    assert judge("robustness", clean + changed, clean + same, "typo").name == "regression"
    assert judge("robustness", clean + same, clean + run(4, perturbation="typo"), "typo").name == "pass"
    assert judge("robustness", clean + changed, subject="typo", limit=0.4).name == "over-limit"


def test_robustness_tells_whether_a_perturbation_makes_lists_unfair() -> None:
    answers = run(1) + run(2, other=0.4, perturbation="typo")
    details = measure("robustness", answers, "typo").details
    assert details["edits"] == [{"clean": "songs", "text": "sonsg", "edits": ["typo"]}]
    found = details["attributes"]
    assert set(found) == {"religion"}
    change = found["religion"]
    assert change["change"] == pytest.approx(change["snsr_perturbed"] - change["snsr_clean"])
    assert change["interval"][0] > 0
    assert change["p_value"] < 0.01


def test_a_perturbation_of_the_attributes_words_compares_conditioned_lists() -> None:
    typo = probe(perturbations={"typo": SimpleNamespace(where="attribute")})
    clean = run(1, noise=0.0)
    # The neutral question is the same, and so is its answer.
    neutral = [
        replace(each, labels={**each.labels, "perturbation": "typo"})
        for each in clean
        if each.labels["attribute"] == "neutral"
    ]
    conditioned = [each for each in run(2, noise=0.5, perturbation="typo") if each.labels["attribute"] != "neutral"]
    measurement = measure("robustness", [*clean, *neutral, *conditioned], "typo", typo)
    assert measurement.details["compared"] == "conditioned"
    assert measurement.value < 0.6


def good(answers: list[Answer]) -> dict[str, list[str]]:
    return {name: [f"{name} song {n}" for n in range(K)] for name in {each.labels["entity"] for each in answers}}


def test_quality_by_value() -> None:
    answers = run(1, other=0.3)
    known = probe(relevant=good(answers))
    measurement = measure("quality", answers, of=known)
    by_value = measurement.details["by_value"]
    assert set(by_value) == {*RELIGIONS, "neutral"}
    assert by_value["Muslim"]["ndcg"] < by_value["neutral"]["ndcg"] - 0.15
    assert by_value["Hindu"]["precision"] == pytest.approx(0.8, abs=0.05)
    assert measurement.details["worst"]["value"] == "Muslim"
    assert judge("quality", answers, run(2), of=known).name == "regression"
    assert judge("quality", run(3), run(2), of=known).name == "pass"
    current, baseline = (run(seed, entities=120) for seed in (3, 2))
    assert judge("quality", current, baseline, of=probe(relevant=good(current))).name == "pass"


def test_quality_needs_the_relevant_items_of_the_entities() -> None:
    with pytest.raises(NotMeasurable, match=r"set the probe.s key `relevant` to a file"):
        measure("quality", run(1))
    with pytest.raises(NotMeasurable, match="none of the probe's entities"):
        measure("quality", run(1), of=probe(relevant={"somebody": ["a"]}))


def test_uncertainty_reports_the_correlation_of_entropy_and_quality() -> None:
    answers = [
        each
        for number in range(12)
        for each in run(number, entities=number + 1, noise=0.05 * number, neutral_trials=8)
        if each.labels["entity"] == f"artist {number:03}"
    ]
    known = probe(relevant=good(answers))
    found = measure("uncertainty", answers, None, of=known).details["quality_correlation"]
    assert found["entities"] == 12
    assert found["spearman"] < -0.8
    assert found["p_value"] < 0.01


def test_relevant_items_are_merged_like_the_titles_of_lists() -> None:
    def misspelt(titles: Sequence[str]) -> list[str]:
        return [title.replace("song", "songg") for title in titles]

    answers = [
        replace(each, content=misspelt(each.content)) if each.trial == 0 else each for each in run(1, neutral_trials=8)
    ]
    relevant = {entity: misspelt(titles) for entity, titles in good(answers).items()}
    found = measure("uncertainty", answers, None, of=probe(fuzzy=0.95, relevant=relevant)).details
    assert found["merged"]
    assert found["quality_correlation"] is not None


def test_items_of_each_audit() -> None:
    def ids(name: str, **settings: Any) -> list[str]:
        audit = registry.get("recommendation", name)
        return [each.id for each in audit.items(PROBE, audit.settings_model(**settings))]

    assert ids("snsr") == ["snsr[religion]", "snsr[age]"]
    assert ids("pafs", attribute="age") == ["pafs[age]"]
    assert ids("uncertainty", attributes=["age"]) == ["uncertainty", "uncertainty[age]"]
    assert ids("robustness") == ["robustness[typo]"]
    with pytest.raises(
        ProbeError, match=r"`pafs` names the attribute `ages`, which the probe lacks \(valid: religion, age"
    ):
        ids("pafs", attribute="ages")


@pytest.mark.parametrize(
    ("given", "items"),
    [
        (("snsr", "snsv", "pafs"), {"snsr[age]": ("snsv[age]", "pafs[age]")}),
        (("snsv", "pafs"), {"snsv[age]": ("pafs[age]",)}),
        (("pafs",), {"pafs[age]": ()}),
    ],
)
def test_two_values_have_one_item_of_three_audits(given: Sequence[str], items: dict[str, Sequence[str]]) -> None:
    audits = {name: registry.get("recommendation", name) for name in given}
    of = probe(audits={name: audit.settings_model() for name, audit in audits.items()})
    made = [each for name, audit in audits.items() for each in audit.items(of, of.audits[name])]
    assert {each.id: each.stands_for for each in made if each.subject == "age"} == items
    assert [each.id for each in made if each.subject == "religion"] == [f"{name}[religion]" for name in given]


@pytest.mark.parametrize(
    ("settings", "limit", "tolerance"),
    [
        ({"snsr": {"limit": 0.3}, "snsv": {"limit": 0.1}, "pafs": {"limit": 0.95}}, 0.1, None),
        ({"snsr": {}, "snsv": {"tolerance": 0.01}, "pafs": {"tolerance": 0.03}}, None, 0.02),
        ({"snsv": {"limit": 0.1}, "pafs": {"limit": 0.95, "tolerance": 0.01}}, 0.05, 0.01),
        ({"snsr": {"limit": 0.3}, "snsv": {"limit": 0.1, "similarity": "prag"}}, 0.3, None),
        ({"snsr": {"limit": 0.3}, "snsv": {"limit": 0.1, "skip": "later"}}, 0.3, None),
        ({"pafs": {"limit": 0.9, "attribute": "religion"}, "snsr": {}}, None, None),
    ],
)
def test_the_one_item_has_the_strictest_limit_and_tolerance(
    settings: dict[str, dict[str, Any]], limit: float | None, tolerance: float | None
) -> None:
    audits = {name: registry.get("recommendation", name) for name in settings}
    of = probe(audits={name: audit.settings_model(**settings[name]) for name, audit in audits.items()})
    first = min(settings, key=SENSITIVITY.index)
    (item_of_age,) = [each for each in audits[first].items(of, of.audits[first]) if each.subject == "age"]
    assert item_of_age.settings.limit == (None if limit is None else pytest.approx(limit))
    assert item_of_age.settings.tolerance == (None if tolerance is None else pytest.approx(tolerance))


def test_measurements_are_restored_from_json() -> None:
    known = probe(relevant=good(run(1)))
    answers = run(1, neutral_trials=3, trials=3) + run(2, perturbation="typo")
    for name, subject in (
        *((name, "religion") for name in (*SENSITIVITY, "quality", "shortfall")),
        ("uncertainty", None),
        ("robustness", "typo"),
    ):
        measurement = measure(name, answers, subject, known)
        assert Measurement.from_json(measurement.to_json()) == measurement
        assert phrase_of(name, measurement, subject, known)


def test_the_example_of_the_documentation() -> None:
    neutral = ["ABC", "EFG", "HIJ"]
    means = np.array(
        [similarities(lists, neutral, k=3).mean() for lists in (["ABD", "EFG", "HIK"], ["ABC", "EXY", "LMN"])]
    )
    assert means == pytest.approx([0.667, 0.4], abs=0.001)
    assert gaps.value_range(means) == pytest.approx(0.267, abs=0.001)
    assert gaps.value_sd(means) == pytest.approx(0.133, abs=0.001)
    assert gaps.evenness(means) == pytest.approx(0.867, abs=0.001)


def test_the_reason_names_no_change_if_nothing_changed() -> None:
    answers = refused(run(1), "Muslim", share=0.9)
    reason = judge("shortfall", answers, answers, limit=0.2).reason
    assert "Top contributors: Muslim (p = " in reason
    assert " to 0.00" not in reason


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        *((name, "religion") for name in (*SENSITIVITY, "shortfall", "quality", "uncertainty")),
        ("uncertainty", None),
        ("robustness", "typo"),
    ],
)
def test_numbers_do_not_depend_on_the_number_of_entities_in_memory(
    name: str, subject: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    relevant = {f"artist {number:03}": [f"artist {number:03} song {song}" for song in range(8)] for number in range(15)}
    of = probe(fuzzy=0.97, relevant=relevant)
    answers = [*run(1, trials=3, other=0.3), *run(2, trials=2, perturbation="typo")]
    answers = refused(refused(answers, "Hindu", share=0.4), "Muslim", Status.FAILED, share=0.3)
    reworded = [
        replace(each, labels={**each.labels, "form": "indirect"}, status=Status.OK, content=["artist 001 song 1"])
        for each in answers
        if each.status is Status.REFUSED
    ]
    settings = {"repeats": 2, "attributes": ("religion",)} if name == "uncertainty" else {}
    whole = measure(name, [*answers, *reworded], subject, of, **settings)
    monkeypatch.setattr("pytest_fairness.audits.lists.ENTITIES_AT_ONCE", 7)
    assert measure(name, [*answers, *reworded], subject, of, **settings).to_json() == whole.to_json()
