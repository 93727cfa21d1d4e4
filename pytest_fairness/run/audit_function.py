"""The function `audit`, which measures a probe file without pytest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pytest_fairness.errors import FairnessError, ProbeError
from pytest_fairness.option_types import in_folder
from pytest_fairness.options import DEFAULT_HTTP_ANSWER, DEFAULT_HTTP_BODY, DEFAULT_TARGET, SETTINGS, RunSettings
from pytest_fairness.records import Answer, Measurement
from pytest_fairness.reports.tables.data_table import DataTable
from pytest_fairness.reports.tables.words import words
from pytest_fairness.run.items.item_view import ItemView, table_of
from pytest_fairness.run.items.probe_items import ProbeItem, items_of
from pytest_fairness.run.measuring import placebos, variants
from pytest_fairness.run.run import Run
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.python_callable import Application

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Audited(ItemView):
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
    error: FairnessError | None
    _read: Callable[[ProbeItem], Sequence[Answer]]

    @property
    def answers(self) -> Sequence[Answer]:
        """Return the answers from which the item was measured, read again from the store or the probe's answer file.

        Raises:
            FairnessError: the answers are no longer recorded.
        """
        return self._read(self.item)

    def _measurement_or_error(self) -> Measurement | FairnessError:
        return self.error or cast("Measurement", self.measurement)

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
        """Return the table of measurements as a pandas data frame.

        Raises:
            FairnessError: pandas is not installed.
        """
        return self.table.to_pandas()

    def words(self) -> DataTable:
        """Return a table of all words in the answers of the measured items; audits that use no words add no rows.

        Raises:
            FairnessError: the answers are no longer recorded.
        """
        return DataTable.joined([result.words() for result in self if result.error is None], words([]))

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
    judge_base_url: str | None = None,
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
        judge_base_url: endpoint of an `openai:` judge.
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
    arguments = {
        "base_url": base_url,
        "trials": trials,
        "concurrency": concurrency,
        "max_requests": max_requests,
        "fresh": fresh,
        "replay": replay,
        "store": str(store),
        "max_age": max_age,
        "target_version": target_version,
        "http_body": http_body,
        "http_answer": http_answer,
        "http_headers": http_headers,
        "api_headers": api_headers,
        "judge": judge,
        "judge_base_url": judge_base_url,
        "embeddings_base_url": embeddings_base_url,
        "scorers": scorers,
        "timeout": timeout,
        "give_up": give_up,
        "max_answer_bytes": max_answer_bytes,
        "device": device,
    }
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
    """Return a target's name for tables and messages: the name of its function, or else `target`."""
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
        measured = placebos.with_placebo(run.measurer, run.measurer.measure(item, target), target)
        measurement = variants.with_variants(run.measurer, measured, target).measurement
    except FairnessError as error:
        return Audited(item, name, None, error, read)
    return Audited(item, name, measurement, None, read)


def _recorded_answers(settings: RunSettings, target: str | Application | Target, item: ProbeItem) -> Sequence[Answer]:
    """Return the answers of an item, from the store or from its probe's answer file; send no requests."""
    with Run(replace(settings, fresh=False, replay=True)) as run:
        return run.answers.of_item(item, run.targets.from_value(target, _name_of(target)) if item.asks else None)
