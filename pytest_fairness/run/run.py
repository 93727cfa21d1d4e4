"""The part of a run that one process carries out, without pytest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_fairness import kinds, probes
from pytest_fairness.asking.store.runs import RunId
from pytest_fairness.asking.store.store import Store
from pytest_fairness.asking.timing import DEFAULT_TIMING
from pytest_fairness.backends import Backend
from pytest_fairness.closing import Closing
from pytest_fairness.errors import FairnessError, NotMeasurable
from pytest_fairness.options import RunSettings
from pytest_fairness.plurals import counted
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import VerdictName
from pytest_fairness.run.answering.engines import Engines
from pytest_fairness.run.answering.item_answers import ItemAnswers, read_all, with_follow_ups
from pytest_fairness.run.answering.open_targets import OpenTargets
from pytest_fairness.run.comparing.baseline_comparer import BaselineComparer, BaselineComparison
from pytest_fairness.run.earlier_results import EarlierResults
from pytest_fairness.run.items.probe_items import RECENT, ProbeItem
from pytest_fairness.run.measuring import placebos, variants
from pytest_fairness.run.measuring.measurements import ItemMeasurement
from pytest_fairness.run.measuring.measurer import Measurer
from pytest_fairness.run.results import verdict_on
from pytest_fairness.scorers import registry as scorer_registry
from pytest_fairness.targets.base import Target


class Run(Closing):
    """The part of a run that one process carries out; a run has one or more processes.

    A process asks targets, measures the answers, and compares the measurements with baselines.

    Args:
        settings: the run's settings.
        started: start of the run, in seconds since the epoch; all processes of the run use the same number.
        addresses: addresses of the models that another process of the run serves on this machine, by target.
        run: identifier of the whole run, by default a new identifier; all processes of the run use the same identifier.
    """

    def __init__(
        self,
        settings: RunSettings,
        *,
        started: float | None = None,
        addresses: Mapping[str, str] | None = None,
        run: Sequence[Any] | None = None,
    ) -> None:
        self.settings = settings
        self.started = time.time() if started is None else started
        self.backend = Backend(settings.backend)
        self.id = RunId(*run) if run else RunId.new(settings.run_name)
        self.targets = OpenTargets(settings, addresses or {})
        self.engines = Engines(settings, self.id, self.started)
        self.answers = ItemAnswers(self.targets, self.engines)
        self.measurer = Measurer(self.targets, self.engines, self.answers)
        self.baselines = BaselineComparer(settings, self.started, self.measurer)
        self.earlier_results = EarlierResults(self.engines, self.baselines)

    @property
    def store(self) -> Store:
        """Return the store of recorded responses; the first call opens the store."""
        return self.engines.store

    def load(self, path: Path) -> Probe:
        """Return the probe in a file; see `probes.load`."""
        return probes.load(path, kinds.schemas(), root=self.settings.root, scorers=self.scorers)

    @property
    def scorers(self) -> dict[str, str]:
        """Return the scorers that a probe may name, each with its definition; see `scorers.registry.known`."""
        return scorer_registry.known(dict(self.settings.scorers))

    def plan(self, target: Target, items: Iterable[ProbeItem]) -> None:
        """Send the requests of the items, their placebos and variants in the background; see `variants.requests`."""
        own_first = self.settings.max_requests is not None
        self.engines.plan(target, variants.requests(items, own_first=own_first))

    async def send_in_batches(
        self, target: Target, items: Iterable[ProbeItem], show_line: Callable[[str], None]
    ) -> None:
        """Send the requests of the items, their placebos and variants in batches; see `Engines.send_in_batches`."""
        own_first = self.settings.max_requests is not None
        await self.engines.send_in_batches(target, variants.requests(items, own_first=own_first), show_line)

    def ask_shard(self, target: Target, item: ProbeItem) -> None:
        """Send the requests of the run's shard for an item, its placebo and its variants; wait for the responses.

        The follow-up prompts to the answers are sent, too.

        Raises:
            FairnessError: a request failed.
        """
        final = item.analyses[-1]
        own = list(self.engines.own_part(target, variants.requests([final])))
        answered = self.engines.ask(target, own)
        failed = [response for response in answered if isinstance(response, FairnessError)]
        if failed:
            raise FairnessError(
                f"{len(failed):,} of {counted(len(own), 'request')} failed. The first error: {failed[0]}"
            )
        responses = dict(zip(own, answered, strict=True))
        for each in (final, *variants.further_items(final)):
            if each.probe.follow_ups.possible:
                prompts = [prompt for prompt in each.prompts() if prompt.request in responses]
                answers = read_all(prompts, [responses[prompt.request] for prompt in prompts], each.probe.language)
                with_follow_ups(answers, each.probe, target, self.engines)

    def measure_and_compare(
        self, item: ProbeItem, target: Target | None, *, rebaseline: bool = False
    ) -> tuple[ItemMeasurement, BaselineComparison]:
        """Return the measurement of an item with its placebo and variants, and the comparison with the item's baseline.

        With growing trials, the item is measured and compared at each interim analysis until its verdict is clear.

        Args:
            target: the system under test; `None` if the answers are in the probe's `responses:` file.
            rebaseline: whether to make only the final analysis, and to return its measurement as a new baseline.

        Raises:
            NotMeasurable: there are too few usable answers.
            FairnessError: answers are missing (see `ItemAnswers.of_item`), or the baseline cannot be read.
        """
        if rebaseline:
            measured = self._with_placebo(item.analyses[-1], target)
            compared = self.baselines.new_baseline(measured)
        else:
            measured, compared = self._measured_and_compared(item, target)
        return variants.with_variants(self.measurer, measured, target), compared

    def measure(self, item: ProbeItem, target: Target | None) -> ItemMeasurement:
        """Return the measurement of an item at its final analysis, with its placebo and variants but no comparison."""
        return variants.with_variants(self.measurer, self._with_placebo(item.analyses[-1], target), target)

    def _with_placebo(self, item: ProbeItem, target: Target | None) -> ItemMeasurement:
        return placebos.with_placebo(self.measurer, self.measurer.measure(item, target), target)

    def _measured_and_compared(
        self, item: ProbeItem, target: Target | None
    ) -> tuple[ItemMeasurement, BaselineComparison]:
        for analysis in item.analyses[:-1]:
            if (decided := self._decided(analysis, target)) is not None:
                return decided
        measured = self._with_placebo(item.analyses[-1], target)
        return measured, self.baselines.compare(measured)

    def _decided(self, analysis: ProbeItem, target: Target | None) -> tuple[ItemMeasurement, BaselineComparison] | None:
        """Return the measurement and comparison of an interim analysis; `None` if a later analysis must decide.

        A later analysis must decide if the verdict is inconclusive, or if the item has too few usable answers so far.
        The answers are freed when the method returns `None`, before the next analysis needs memory.
        """
        try:
            measured = self._with_placebo(analysis, target)
        except NotMeasurable as error:
            if error.permanent:
                raise
            return None
        compared = self.baselines.compare(measured)
        is_open = verdict_on(measured, compared).name is VerdictName.INCONCLUSIVE
        return None if is_open else (measured, compared)

    def stop(self, grace: float = DEFAULT_TIMING.stop_grace) -> None:
        """Store results for later runs, stop sending requests from this process, and free the answers in memory.

        Args:
            grace: seconds to wait for the requests in flight.
        """
        self.earlier_results.store()
        RECENT.forget()
        self.answers.forget()
        self.baselines.forget()
        self.engines.stop(grace)

    def stop_all(self) -> None:
        """Stop sending requests from all processes of the run."""
        self.engines.stop_all()
        self.stop()

    def close(self) -> None:
        """Stop sending, and close the store."""
        self.stop()
        self.engines.close()
        self.backend.close()
