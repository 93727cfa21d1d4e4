"""Measurer of items; a measurement that the store holds from an earlier run is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TypeVar, cast

from pytest_fairness.audits.answer_checks import checks, confounding
from pytest_fairness.audits.answer_checks.confounding import Confounder
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.base import ResponsesSettings
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Comparison, Json, Measurement, RowsWithoutGroup
from pytest_fairness.run.answering.engines import Engines
from pytest_fairness.run.answering.item_answers import ItemAnswers
from pytest_fairness.run.answering.open_targets import OpenTargets
from pytest_fairness.run.items.probe_items import ProbeItem
from pytest_fairness.run.measuring import noise
from pytest_fairness.run.measuring.measurements import ItemMeasurement, measurement_key
from pytest_fairness.targets.base import Target

ResultT = TypeVar("ResultT", bound=Measurement | Comparison | float)


class Measurer:
    """Measurer of items from their answers.

    Attributes:
        answers: source of the answers of items, which also prepares answers for audits.
    """

    def __init__(self, targets: OpenTargets, engines: Engines, answers: ItemAnswers) -> None:
        self._targets, self._engines, self.answers = targets, engines, answers

    def measure(self, item: ProbeItem, target: Target | None) -> ItemMeasurement:
        """Return the measurement of an item; responses that are not recorded are requested.

        Args:
            target: the system under test; `None` if the answers are in the probe's `responses:` file.

        Raises:
            NotMeasurable: there are too few usable answers.
            FairnessError: answers are missing; see `ItemAnswers.of_item`.
        """
        answers = self.answers.of_item(item, target)
        if target is not None:
            return self.measure_answers(item, answers, target.name)
        content = self.answers.of_file(item.probe)
        left_out = content.without_group
        try:
            measured = self.measure_answers(item, answers, cast("ResponsesSettings", item.probe.responses).file.name)
        except NotMeasurable as error:
            if left_out is not None:
                error.args = (f"{str(error).rstrip('.')}. {left_out}.",)
            raise
        if left_out is not None:
            measured = _with_rows_without_group(measured, left_out)
        # The items of a generation probe compare the groups of their own axes only.
        every_item = not isinstance(item.probe, GenerationProbe)
        return _with_confounders(
            measured, [each for each in content.confounders if every_item or each.label in item.labels]
        )

    def measure_answers(self, item: ProbeItem, answers: Sequence[Answer], target: str) -> ItemMeasurement:
        """Return the measurement of an item from these answers of a target.

        Raises:
            NotMeasurable: there are too few usable answers.
        """
        found = self.stored("measure", item, [answers], Measurement.from_json, lambda: self._measured(item, answers))
        return ItemMeasurement(item, target, answers, found)

    def stored(
        self,
        what: str,
        item: ProbeItem,
        runs: Sequence[Sequence[Answer]],
        from_json: Callable[[Json], ResultT],
        compute: Callable[[], ResultT],
    ) -> ResultT:
        """Return the stored result of a computation; without a stored result, compute and store the result.

        Results of the audit `score` are not stored, because a scorer that fails on a text may succeed in the next run.

        Args:
            what: name of the computation.
            runs: answers of one run, or of the two runs that are compared.
            from_json: function that converts the stored JSON to the result.
            compute: function that computes the result; if it raises an error, nothing is stored.
        """
        preparation = item.models.preparation
        if preparation is not None and preparation.gives == "score":
            return compute()
        embedder = self._targets.embedder(item)
        key = measurement_key(what, item, *runs, embedder=None if embedder is None else embedder.identity)
        kept = self._engines.store.cache.get(key, from_json)
        if kept is not None:
            return kept
        found = compute()
        self._engines.store.cache.put(key, found if isinstance(found, float) else found.to_json())
        return found

    def _measured(self, item: ProbeItem, answers: Sequence[Answer]) -> Measurement:
        readable = self.answers.prepared(item, answers)
        counted = item.audit.counted_answers(item, answers)
        try:
            measurement = item.audit.measure(item, readable)
        except NotMeasurable as error:
            failed, unread = checks.failed_requests(counted), checks.unread_reasons(counted)
            causes = (
                [f"Unreadable answers: {', '.join(f'{why} ({count})' for why, count in unread.items())}"]
                if unread
                else []
            )
            causes += [failed.message] if failed is not None else []
            if causes:
                error.args = (f"{str(error).rstrip('.')}. {'. '.join(causes)}.",)
            raise
        details = dict(measurement.details)
        if thoughts := sum(bool(answer.thoughts) for answer in counted):
            details["thoughts"] = {"answers": thoughts, "of": len(counted)}
        if blocked := checks.blocked(item, counted):
            details["blocked"] = {group: count for group, (count, _) in blocked.items()}
        if unread := checks.unread_reasons(counted):
            details["unread_reasons"] = unread
            details["unread_by_group"] = checks.unread_by_group(item, counted)
        if (cut := checks.truncated(item.probe, counted))["answers"]:
            details["truncated"] = cut
        if (moved := noise.paraphrases(item, readable)) is not None:
            details["paraphrases"] = moved
        measurement = replace(measurement, details=details)
        return replace(measurement, concerns=checks.concerns(item.audit, item, counted, measurement))


def _with_rows_without_group(measured: ItemMeasurement, left_out: RowsWithoutGroup) -> ItemMeasurement:
    """Return the measurement with details about the rows that name no group; many such rows are a concern.

    Measurements in the store depend only on the answers, so they have neither these details nor the concern.
    """
    found, concern = measured.measurement, checks.rows_without_group(left_out)
    of_file = {name: value for name, value in asdict(left_out).items() if value != ""}
    details = {**found.details, "rows_without_group": {**of_file, "columns": list(left_out.columns)}}
    concerns = (*found.concerns, *([] if concern is None else [concern]))
    return replace(measured, measurement=replace(found, details=details, concerns=concerns))


def _with_confounders(measured: ItemMeasurement, confounders: Sequence[Confounder]) -> ItemMeasurement:
    """Return the measurement with the columns that predict its groups, as details and as a note in its reason."""
    if not confounders:
        return measured
    found, concern = measured.measurement, confounding.concern(confounders)
    details = {**found.details, confounding.CONFOUNDING: [each.note for each in confounders]}
    concerns = (*found.concerns, *([] if concern is None else [concern]))
    return replace(measured, measurement=replace(found, details=details, concerns=concerns))
