"""The part of a run that one process carries out, without pytest; the function `audit`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness import kinds, probes, scorers
from pytest_fairness.asking.claims import RunId
from pytest_fairness.asking.limits import DEFAULT_TIMING
from pytest_fairness.asking.store import Store
from pytest_fairness.backends import Backend
from pytest_fairness.errors import FairnessError, NotMeasurable, ProbeError, counted
from pytest_fairness.option_types import in_folder
from pytest_fairness.options import DEFAULT_HTTP_ANSWER, DEFAULT_HTTP_BODY, DEFAULT_TARGET, SETTINGS, RunSettings
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import Answer, Measurement, VerdictName
from pytest_fairness.reports.tables import DataTable, word_table
from pytest_fairness.resources import Closing
from pytest_fairness.run import variants
from pytest_fairness.run.against import BaseRevision
from pytest_fairness.run.control import ControlArm
from pytest_fairness.run.engines import Engines, Targets
from pytest_fairness.run.items import RECENT, InspectedItem, ProbeItem, items_of, table_of
from pytest_fairness.run.measuring import (
    ItemMeasurement,
    Measurer,
    read_all,
    with_follow_ups,
)
from pytest_fairness.run.nights import NightHistory
from pytest_fairness.run.results import BaselineComparison, Baselines, in_written_words, verdict_on
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.python import Application

if TYPE_CHECKING:
    import pandas as pd


# The part of a run that one process carries out, without pytest.


class Run(Closing):
    """The part of a run that one process carries out; a run has one or more processes.

    A process asks targets, measures the answers, and compares the measurements with baselines.

    Args:
        settings: the run's settings.
        started: start of the run, in seconds since the epoch; all processes of the run use the same number.
        addresses: addresses of the models that another process of the run serves on this machine, by target.
        run: identifier of the whole run, by default a new identifier; all processes of the run use the same identifier.
        targets, engines: classes of its targets and engines; others give recorded answers only.
    """

    def __init__(
        self,
        settings: RunSettings,
        *,
        started: float | None = None,
        addresses: Mapping[str, str] | None = None,
        run: Sequence[Any] | None = None,
        targets: type[Targets] = Targets,
        engines: type[Engines] = Engines,
    ) -> None:
        self.settings = settings
        self.started = time.time() if started is None else started
        self._backend = None if settings.backend == "none" else Backend(settings.backend)
        self.id = RunId(*run) if run else RunId.new(settings.run_name)
        self.targets = targets(settings, addresses or {})
        self.engines = engines(settings, self.id, self.started)
        self.measurer = Measurer(self.targets, self.engines)
        self.base = None if settings.against is None else BaseRevision(settings, settings.against)
        self.nights = NightHistory(settings, self.id.name, self.started, lambda: self.store)
        self.baselines = Baselines(settings, self.started, self.measurer, self.nights, self.base)
        self.control: ControlArm | None = None
        if self.base is not None and settings.control:
            self.control = ControlArm(self.base, settings, self.targets, self.engines, self.measurer, self.baselines)

    @property
    def store(self) -> Store:
        """Return the store of recorded responses; the first call opens the store."""
        return self.engines.store

    def load(self, path: Path) -> Probe:
        """Return the probe in a file; see `probes.load`."""
        return probes.load(path, kinds.schemas(), root=self.settings.root, scorers=self.scorers)

    @property
    def scorers(self) -> dict[str, str]:
        """Return the scorers that a probe may name, each with its definition; see `known_scorers`."""
        return scorers.known_scorers(dict(self.settings.scorers))

    def plan(self, target: Target, items: Iterable[ProbeItem]) -> None:
        """Send the requests of the items, their placebos and variants in the background; see `item_requests`."""
        own_first = self.settings.max_requests is not None
        self.engines.plan(target, variants.item_requests(items, own_first=own_first))

    async def send_in_batches(
        self, target: Target, items: Iterable[ProbeItem], show_line: Callable[[str], None]
    ) -> None:
        """Send the requests of the items, their placebos and variants in batches; see `Engines.send_in_batches`."""
        own_first = self.settings.max_requests is not None
        await self.engines.send_in_batches(target, variants.item_requests(items, own_first=own_first), show_line)

    def ask_shard(self, target: Target, item: ProbeItem) -> None:
        """Send the requests of the run's shard for an item, its placebo and its variants; wait for the responses.

        The follow-up prompts to the answers are sent, too.

        Raises:
            FairnessError: a request failed.
        """
        final = item.analyses[-1]
        own = list(self.engines.own_part(target, variants.item_requests([final])))
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
            FairnessError: answers are missing (see `Measurer.answers`), or the baseline cannot be read.
        """
        analyses = iter(item.analyses[-1:] if rebaseline or self.control else item.analyses)
        while True:
            analysis = next(analyses)
            try:
                measured = variants.with_placebo(self.measurer, self.measurer.measure(analysis, target), target)
            except NotMeasurable as error:
                if error.permanent or analysis.final_analysis:
                    raise
                continue  # a later analysis has more usable answers
            compared = self.baselines.new_baseline(measured) if rebaseline else self.baselines.compare(measured)
            if self.control is not None:
                compared = self.control.compare(measured, target, compared)
            if analysis.final_analysis or verdict_on(measured, compared).name is not VerdictName.INCONCLUSIVE:
                return variants.with_variants(self.measurer, measured, target), compared
            del measured, compared  # their answers are freed before the next analysis needs memory

    def measure(self, item: ProbeItem, target: Target | None) -> ItemMeasurement:
        """Return the measurement of an item at its final analysis, with its placebo and variants but no comparison."""
        measured = self.measurer.measure(item.analyses[-1], target)
        return variants.with_variants(self.measurer, variants.with_placebo(self.measurer, measured, target), target)

    def stop(self, grace: float = DEFAULT_TIMING.stop_grace) -> None:
        """Stop sending requests from this process, and free the answers in memory."""
        RECENT.forget()
        self.measurer.forget()
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
        if self._backend is not None:
            self._backend.close()
        for resource in (self.control, self.base):
            if resource is not None:
                resource.close()


# The function `audit`, which measures a probe file without pytest.


@dataclass(frozen=True, repr=False)
class Audited(InspectedItem):
    """Result of `audit` for one item: a measurement, or the error that prevented the measurement.

    Attributes:
        item: the item with its probe and audit.
        target: name of the target.
        measurement: value, interval, standard error, p-value, counts and details; `None` if there is an error.
        error: the error; `None` if there is a measurement.
    """

    item: ProbeItem
    target: str
    measurement: Measurement | None
    _read: Callable[[ProbeItem], Sequence[Answer]]
    error: FairnessError | None = None

    @property
    def answers(self) -> Sequence[Answer]:
        """Return the answers from which the item was measured, read again from the store or the probe's answer file.

        Raises:
            FairnessError: the answers are no longer recorded.
        """
        return self._read(self.item)

    def _answers(self) -> Sequence[Answer]:
        return self.answers


class AuditResults(list[Audited]):
    """Results of `audit`: a list with one `Audited` for each item, in the probe's order.

    A notebook shows the list as a table. `to_pandas()` returns the table with all columns; `words()` returns a table of
    all words in the answers.
    """

    def __init__(self, results: Sequence[Audited], started: float) -> None:
        super().__init__(results)
        self._started = datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def table(self) -> DataTable:
        """Return the table of measurements: one row for each item."""
        return table_of(self, self._started)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table of measurements as a pandas data frame."""
        return self.table.to_pandas()

    def words(self) -> DataTable:
        """Return a table of all words in the answers of the measured items; audits that use no words add no rows.

        Raises:
            FairnessError: the answers are no longer recorded.
        """
        return DataTable.joined([result.words() for result in self if result.error is None], word_table([]))

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def audit(
    probe: str | Path,
    target: str | Application | Target = DEFAULT_TARGET,
    *,
    base_url: str | None = None,
    trials: int | None = None,
    concurrency: int = 16,
    max_requests: int | None = None,
    fresh: bool = False,
    replay: bool = False,
    store: str | Path = ".fairness/responses.sqlite",
    max_age: float = 24.0,
    target_version: str | None = None,
    http_body: str = DEFAULT_HTTP_BODY,
    http_answer: str = DEFAULT_HTTP_ANSWER,
    http_headers: Sequence[str] = (),
    api_headers: Sequence[str] = (),
    judge: str | None = None,
    embeddings_base_url: str | None = None,
    scorers: Sequence[str] = (),
    timeout: float = 120.0,
    give_up: float = 120.0,
    max_answer_bytes: int = 4 * 1024 * 1024,
    device: str | None = None,
) -> AuditResults:
    """Measure every audit of a probe file, without pytest, baselines and verdicts.

    The settings mean the same as the options of the command line and the ini file.

    Args:
        probe: path of the probe file.
        target: system under test: a name such as `openai:MODEL`, a callable that takes a prompt and returns an answer,
            or an object with the methods of `Target`.
        base_url: endpoint of an `openai:` target.
        trials: number of trials, which overrides the number in the probe.
        concurrency: maximum number of requests in flight.
        max_requests: maximum number of requests to send, including retries.
        fresh: whether to send every request again, even if its response is recorded.
        replay: whether to use recorded responses only, and to send no requests.
        store: file of the recorded responses.
        max_age: hours after which a request with a recorded response is sent again.
        target_version: version of the target. Responses of other versions are not reused; responses of a callable are
            reused only if a version is set.
        http_body: body of a request to an http target.
        http_answer: JSONPath of the answer in the response of an http target.
        http_headers: headers that are sent to an http target, each as `Name: value`.
        api_headers: headers that are sent to the API of an `openai:` or `anthropic:` target and of similar services.
        judge: target of the judge model, for probes with `answer: {judge: true}` or `refusals: {by: judge}`.
        embeddings_base_url: endpoint of `openai:` embeddings.
        scorers: scorers for the audit `score`, each as `NAME=SCORER`: `politeness=python:checks.tone:politeness`.
        timeout: time limit of one request in seconds.
        give_up: seconds without any answer after which the run gives up on the target.
        max_answer_bytes: maximum size of one answer in bytes.
        device: device of a `transformers:` target.

    Returns:
        A list with one `Audited` for each item, in the probe's order. An item that cannot be measured holds its error.

    Raises:
        ProbeError: the probe file has errors.
        TargetError: the target or the judge model does not exist.
        ValueError: a setting has an invalid value.

    Examples:
        >>> def application(prompt):
        ...     return "I'm sorry, but I can't help with that." if "woman" in prompt else "A lamp."
        >>> results = audit("probes/gifts.yaml", application)
        >>> [(item.id, item.value) for item in results]
        [('refusals[person=woman]', 1.0)]
        >>> results.table.write("results.csv")
    """
    # All arguments but the first two have the name of a setting.
    arguments = {**locals(), "target": None, "store": str(store)}
    root = Path.cwd()
    named = target if isinstance(target, str) else DEFAULT_TARGET
    chosen = RunSettings(root=root, target=named, **_checked(arguments))
    settings = replace(chosen, store=in_folder(root, chosen.store))
    path = _probe_file(probe)
    with Run(settings) as run:
        loaded = run.load(path)
        run.targets.require_judge(loaded)
        items = items_of(loaded, run.settings.trials)
        asked = None
        if loaded.responses is None:
            asked = run.targets.from_value(target, _name_of(target))
            run.plan(asked, [item for item in items if item.models.available])
        read = partial(_recorded_answers, settings, target)
        name = str(probe) if asked is None else asked.name
        return AuditResults([_audited(run, item, asked, name, read) for item in items], run.started)


def _probe_file(probe: str | Path) -> Path:
    """Return the absolute path of the probe file.

    Raises:
        TypeError: the argument is not a path.
        ProbeError: the path is a folder.
    """
    if not isinstance(probe, str | Path):
        raise TypeError(f"audit takes the path of a probe file, not {type(probe).__name__}.")
    if Path(probe).is_dir():
        raise ProbeError(f"audit takes one probe file, but {probe} is a folder. Call audit for each file in it.")
    return Path(probe).absolute()


def _name_of(target: str | Application | Target) -> str:
    return str(getattr(target, "__name__", "target"))


def _checked(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `audit` as checked settings.

    Raises:
        ValueError: a value is invalid.
    """
    checked = {}
    for option in SETTINGS:
        name = option.name.removeprefix("fairness_")
        if option.setting is None or arguments.get(name) is None:
            continue
        try:
            checked[option.setting] = option.type.parse(arguments[name])
        except ValueError as error:
            raise ValueError(f"audit: {name} {error}") from None
        except (TypeError, AttributeError):
            raise ValueError(f"audit: {name} must be {option.type.takes}, not {arguments[name]!r}.") from None
    return checked


def _audited(
    run: Run, item: ProbeItem, target: Target | None, name: str, read: Callable[[ProbeItem], Sequence[Answer]]
) -> Audited:
    try:
        measured = variants.with_placebo(run.measurer, run.measurer.measure(item, target), target)
        measured = variants.with_variants(run.measurer, measured, target)
    except FairnessError as error:
        return Audited(item, name, None, read, error)
    measured, _ = in_written_words(measured, BaselineComparison())
    return Audited(item, name, measured.measurement, read)


def _recorded_answers(settings: RunSettings, target: str | Application | Target, item: ProbeItem) -> Sequence[Answer]:
    with Run(replace(settings, fresh=False, replay=True)) as run:
        return run.measurer.answers(item, run.targets.from_value(target, _name_of(target)) if item.asks else None)
