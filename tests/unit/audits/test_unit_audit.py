"""The base class of audits of a table by unit: matching of units, too few units, and answers with two outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.unit_audit import UnitAudit, UnitTable
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.records import Answer, Status
from pytest_fairness.stats.resampling import Floats
from pytest_fairness.stats.unit_statistics import LargestGap
from pytest_fairness.stats.unit_tables import Mean, UnitChange, UnitStatistic

PROBE: Any = None
"""The probe of the item, which no audit here uses."""
ITEM = AuditItem(PROBE, "share", None, {}, AuditSettings(), 0.01, "a test")


class Share(UnitAudit[Any, AuditSettings]):
    """Share of the records whose answer is yes."""

    info = AuditInfo(name="share", title="A test's audit", better=Direction.LOWER, tolerance=0.05, value_range=(0, 1))
    kind: ClassVar[str] = "counterfactual"
    version: ClassVar[int] = 1
    settings_model: ClassVar[type[AuditSettings]] = AuditSettings
    counted: ClassVar[str] = "records"

    def items(self, probe: Probe, settings: AuditSettings) -> list[AuditItem[Any, AuditSettings]]:
        return [ITEM]

    def uses(self, item: AuditItem[Any, AuditSettings], labels: Mapping[str, str]) -> bool:
        return True

    def table(self, item: AuditItem[Any, AuditSettings], answers: Sequence[Answer]) -> UnitTable:
        units = tuple(sorted(answer.labels["id"] for answer in answers))
        text = {answer.labels["id"]: answer.text for answer in answers}
        rows = np.array([[np.nan if text[unit] is None else float(text[unit] == "yes")] for unit in units])
        usable = int((~np.isnan(rows)).sum())
        return UnitTable(units, ("yes",), rows, {"all": usable}, {"all": len(rows) - usable}, step=1 / len(rows))

    def clusters(self, item: AuditItem[Any, AuditSettings], *runs: Sequence[Answer]) -> Mapping[str, str]:
        return {}

    def statistic(self, columns: int) -> UnitStatistic:
        return Mean()


def answers(yes: int, no: int, absent: int = 0, first: int = 0) -> list[Answer]:
    texts: list[str | None] = [*["yes"] * yes, *["no"] * no, *[None] * absent]
    return [
        Answer({"id": f"{first + number:04d}"}, 0, text, Status.OK if text else Status.FAILED, text)
        for number, text in enumerate(texts)
    ]


def test_the_value_its_error_and_the_missing_answers() -> None:
    measurement = Share().measure(ITEM, answers(30, 60, absent=10))
    assert measurement.value == pytest.approx(1 / 3)
    assert measurement.standard_error == pytest.approx((1 / 3 * 2 / 3 / 90) ** 0.5, rel=0.1)
    assert measurement.n == {"all": 90}
    assert measurement.missing == {"all": 10}
    assert measurement.details["records"] == 90
    assert len(measurement.details["incomplete"]) == 10


def test_the_message_for_too_few_units_counts_the_missing_answers() -> None:
    with pytest.raises(
        NotMeasurable, match=r"only 3 records can be measured; 4 are needed\. Check the missing answers: 9 of"
    ):
        Share().measure(ITEM, answers(3, 0, absent=9))
    with pytest.raises(NotMeasurable, match="Add records"):
        Share().measure(ITEM, answers(3, 0))


def test_units_are_matched_by_name() -> None:
    comparison = Share().compare(ITEM, answers(40, 60), answers(20, 80))
    assert comparison.value == pytest.approx(0.2)
    assert comparison.p_value is not None
    assert comparison.p_value < 0.005
    with pytest.raises(BaselineStale) as raised:
        Share().compare(ITEM, answers(40, 60), answers(40, 60, first=30))
    assert raised.value.parts == ("list of records",)


@pytest.mark.parametrize(("records", "enough"), [(40, False), (60, False), (80, True), (200, True)])
def test_answers_with_two_outcomes_need_enough_records(records: int, enough: bool) -> None:
    """At alpha 0.01 at least seven flips in one direction are significant; they must be within twice the tolerance."""
    audit: Any = Share()
    run = answers(0, records)
    found = audit.rule.judge_change(audit, ITEM, audit.compare(ITEM, run, run), 0.05, 0.0)
    assert (found.outcome == "within") is enough
    assert found.times_more_units == pytest.approx(max(1.0, 70 / records))


class Gap(Share):
    """Largest gap between the means of three groups; an answer holds a number for each."""

    def table(self, item: AuditItem[Any, AuditSettings], answers: Sequence[Answer]) -> UnitTable:
        rows = np.array([answer.content for answer in answers])
        return UnitTable(tuple(answer.labels["id"] for answer in answers), ("a", "b", "c"), rows, {}, {})

    def statistic(self, columns: int) -> UnitStatistic:
        return LargestGap(columns)


def rows_of(random: np.random.Generator, means: tuple[float, float, float], units: int) -> Floats:
    return np.asarray(np.array(means) + random.normal(0, 0.1, (units, 3)))


def scored(random: np.random.Generator, means: tuple[float, float, float]) -> list[Answer]:
    rows = rows_of(random, means, 100)
    return [Answer({"id": f"{number:04d}"}, 0, "", Status.OK, row) for number, row in enumerate(rows)]


def outcomes(
    current: tuple[float, float, float], baseline: tuple[float, float, float], repeats: int = 60
) -> Counter[str]:
    random, audit, found = np.random.default_rng(5), Gap(), Counter[str]()
    for _ in range(repeats):
        comparison = audit.compare(ITEM, scored(random, current), scored(random, baseline))
        found[audit.rule.judge_change(audit, ITEM, comparison, 0.05, comparison.value).outcome] += 1
    return found


def test_a_gap_that_opens_to_a_third_group_is_a_regression() -> None:
    """Both runs together show two pairs of groups equally far apart; the gap grew from 0.1 to 0.2."""
    found = outcomes((0.5, 0.4, 0.3), (0.5, 0.4, 0.5))
    assert found["beyond"] >= 50
    assert found["within"] <= 3


def test_an_unchanged_gap_between_several_groups_passes() -> None:
    assert outcomes((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))["within"] >= 50
    assert outcomes((0.5, 0.4, 0.4), (0.5, 0.4, 0.4))["within"] >= 50


def test_a_new_gap_between_several_equal_groups_does_not_pass() -> None:
    """The baseline's largest gap is above 0 by chance, so that the growth of the gap alone is underestimated.

    The change is that of the pair that differs most in both runs together, which is not biased.
    """
    found = outcomes((0.5, 0.5, 0.4), (0.5, 0.5, 0.5))
    assert found["within"] <= 3
    random = np.random.default_rng(6)
    growths = [
        UnitChange.of(LargestGap(3), *(rows_of(random, means, 30) for means in runs), least_error=0.0, seed=str(number))
        for number, runs in enumerate([((0.5, 0.5, 0.4), (0.5, 0.5, 0.5))] * 40)
    ]
    assert np.mean([growth.growth for growth in growths]) < 0.09
    assert np.mean([growth.value for growth in growths]) == pytest.approx(0.1, abs=0.01)
    assert {frozenset((growth.pair.first, growth.pair.second)) for growth in growths if growth.pair} <= {
        frozenset((0, 2)),
        frozenset((1, 2)),
    }


def test_the_change_of_equal_groups_is_0_on_average_and_its_interval_holds_it() -> None:
    random, audit = np.random.default_rng(8), Gap()
    found = [audit.compare(ITEM, scored(random, (0.5, 0.5, 0.5)), scored(random, (0.5, 0.5, 0.5))) for _ in range(100)]
    assert np.mean([each.value for each in found]) == pytest.approx(0, abs=0.006)
    assert sum(each.interval[0] <= 0 <= each.interval[1] for each in found if each.interval) >= 90
    assert all(each.pair in each.pairs and each.pair.value == each.value for each in found if each.pair)


def test_a_run_of_several_groups_compared_with_itself_has_not_changed() -> None:
    run = scored(np.random.default_rng(7), (0.5, 0.4, 0.3))
    comparison = Gap().compare(ITEM, run, run)
    assert (comparison.value, comparison.p_value) == (0, 1)
