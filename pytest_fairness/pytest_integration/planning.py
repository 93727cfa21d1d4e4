"""Planning of requests: the target of each item, the requests of all items of a target, the header, the dry run."""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from pytest_fairness.asking.limits import DEFAULT_TIMING
from pytest_fairness.errors import FairnessError, StoreError, TargetError, counted, joined
from pytest_fairness.options import RunSettings
from pytest_fairness.probes import table
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.pytest_integration.configuration import without_interim_analyses
from pytest_fairness.pytest_integration.terminal import ProgressLine
from pytest_fairness.reports.formatting import age, printable, wrap
from pytest_fairness.run import ProbeItem, Run
from pytest_fairness.run.forecast import Forecaster, count_requests
from pytest_fairness.run.plan import plan_lines
from pytest_fairness.targets.base import has_batches

if TYPE_CHECKING:
    from _pytest.fixtures import FixtureDef

    from pytest_fairness.targets.base import Target


# Target of a test item; the settings name the target, or the fixture `fairness_target` provides it.
#
# This module uses pytest's private fixture API, because pytest has no public API for items that are not functions.
# pytest's own doctest items use it, too.

TargetSource: TypeAlias = "FixtureDef[Any] | str"
"""Source of a target: the target's name in the settings or, for a target without a name, the fixture
`fairness_target`."""

PROBE_ITEM = pytest.StashKey[ProbeItem]()
"""Key of the probe item in the stash of a pytest item."""
_DEFINITION = pytest.StashKey["FixtureDef[Any] | None"]()
"""Key of the fixture `fairness_target` in the stash of a probe file or Python test."""
TARGET_FIXTURE = "fairness_target"
OWN_MODULE = "pytest_fairness.plugin"
"""Module of the plugin's own fixture `fairness_target`."""
REQUEST_FIXTURES = frozenset({"llm_client", "corpus_generator", TARGET_FIXTURE})
"""Fixtures with which Python tests send requests."""
CHECK_FIXTURE = "fairness_check"
REPEAT_FIXTURE = "__pytest_repeat_step_number"
"""Fixture by which pytest-repeat repeats a test."""


def probe_item_of(item: pytest.Item) -> ProbeItem | None:
    """Return the probe item of a pytest item; `None` for a Python test."""
    return item.stash.get(PROBE_ITEM, None)


def unrepeated_id(item: pytest.Item) -> str:
    """Return the node id of an item without the number that pytest-repeat adds, so that repetitions are one check."""
    callspec = getattr(item, "callspec", None)
    step = callspec.params.get(REPEAT_FIXTURE) if callspec else None
    return item.nodeid if step is None else re.sub(rf"\[{step + 1}-\d+\]$|-{step + 1}-\d+(?=\]$)", "", item.nodeid)


def is_audit(item: pytest.Item) -> bool:
    """Return whether an item belongs to a probe, is marked `fairness`, or uses a fixture of this plugin."""
    return (
        probe_item_of(item) is not None
        or item.get_closest_marker("fairness") is not None
        or not (REQUEST_FIXTURES | {CHECK_FIXTURE}).isdisjoint(getattr(item, "fixturenames", ()))
    )


def is_skipped(item: pytest.Item) -> bool:
    return item.get_closest_marker("skip") is not None


def target_source(item: pytest.Item) -> TargetSource | None:
    """Return the name or the fixture of an item's target; `None` if the item sends no request."""
    probe_item = probe_item_of(item)
    if not (probe_item.asks if probe_item else not REQUEST_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))):
        return None
    return target_name_of(item) or _definition(item)


def target_name_of(item: pytest.Item) -> str | None:
    """Return the name of an item's target; `None` if the target has no name, or a fixture provides it."""
    if (probe_item := probe_item_of(item)) is not None:
        return probe_item.target
    callspec = getattr(item, "callspec", None)
    name = callspec.params.get(TARGET_FIXTURE) if callspec else None
    return name if isinstance(name, str) and not is_overridden(item) else None


def is_from_settings(source: TargetSource | None) -> bool:
    """Return whether a target comes from the settings; `False` if a fixture of the user provides the target."""
    return source is None or isinstance(source, str) or inspect.unwrap(source.func).__module__ == OWN_MODULE


def is_overridden(node: pytest.Item | pytest.Collector) -> bool:
    """Return whether a conftest overrides the fixture `fairness_target` for a node."""
    return not is_from_settings(_definition(node))


def may_be_overridden(config: pytest.Config) -> bool:
    """Return whether a conftest file or plugin that is loaded before the collection defines `fairness_target`."""
    plugins = config.pluginmanager.get_plugins()
    return any(hasattr(plugin, TARGET_FIXTURE) for plugin in plugins if plugin is not sys.modules[OWN_MODULE])


def uses_default_target(item: pytest.Item, settings: RunSettings) -> bool:
    """Return whether an item uses the default target because no target is named."""
    source = target_source(item) if settings.target_is_default else None
    return source is not None and not isinstance(source, str) and is_from_settings(source)


def analyses_of(items: Iterable[pytest.Item], *, last_only: bool) -> Iterator[ProbeItem]:
    """Yield the first interim analysis of each probe item that is not skipped and whose models are available.

    If `last_only` is set, yield the final analysis of each item.
    """
    for item in items:
        probe_item = probe_item_of(item)
        if probe_item is not None and not is_skipped(item) and probe_item.models.available:
            yield probe_item.analyses[-1 if last_only else 0]


def fixture_name(definition: FixtureDef[Any], root: Path) -> str:
    """Return the name of a target that a fixture provides: `tests/conftest.py::fairness_target`."""
    code = getattr(inspect.unwrap(definition.func), "__code__", None)
    return f"{shown_path(Path(code.co_filename), root) if code else 'a plugin'}::{definition.argname}"


def shown_path(path: Path, root: Path) -> str:
    """Return a path for messages; paths inside pytest's rootdir are relative to the rootdir."""
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _definition(node: pytest.Item | pytest.Collector) -> FixtureDef[Any] | None:
    # The items of a probe file have the same fixtures, which are searched once.
    stash = node.parent.stash if PROBE_ITEM in node.stash and node.parent is not None else node.stash
    if _DEFINITION not in stash:
        definitions = node.session._fixturemanager.getfixturedefs(TARGET_FIXTURE, node)
        stash[_DEFINITION] = definitions[-1] if definitions else None
    return stash[_DEFINITION]


# Targets of items: at the first item of a target, the requests of all items of this target are queued.


class AuditSession:
    """The run and the targets that the items and fixtures of one process share.

    Attributes:
        config: pytest's configuration.
        run: the run in this process.
        rebaseline: whether the run makes new baselines.
        measure_only: whether the run gives no verdicts.
        probe_paths: name and path of each collected probe, by the key of its name.
        faulty: whether a probe file could not be loaded.
        targets: targets that have been asked, by their source.
        planned: sources of the targets whose requests are planned.
        batch_errors: errors of targets whose batches could not be sent or collected, by the id of the target object.
        stop_grace: seconds to wait at the end for requests in flight, because other workers may need their answers.
    """

    def __init__(self, config: pytest.Config, run: Run, progress: ProgressLine) -> None:
        self.config, self.run, self._progress = config, run, progress
        self.rebaseline: bool = config.getoption("fairness_rebaseline")
        self.measure_only: bool = config.getoption("fairness_measure")
        self.probe_paths: dict[str, tuple[str, Path]] = {}
        self.faulty = False
        self.targets: dict[TargetSource, Target] = {}
        self.planned: set[TargetSource] = set()
        self.batch_errors: dict[int, FairnessError] = {}
        self.stop_grace = run.settings.timeout if hasattr(config, "workerinput") else DEFAULT_TIMING.stop_grace

    def waiting_for(self, target: Target) -> AbstractContextManager[None]:
        """Return a context in which the progress line shows the requests of this target."""
        return self._progress.shown(self.run.engines.engine(target).progress)

    def target_of(self, item: pytest.Item) -> Target | None:
        """Return the target of a probe item; `None` if the item's answers are in a file."""
        source = target_source(item)
        if source is None:
            return None
        target = self.targets.get(source)
        if target is None and isinstance(source, str):
            target = self.targets[source] = self.run.targets.named(source)
        elif target is None and not isinstance(source, str):
            values: dict[str, object] = getattr(item, "funcargs", {})
            target = self._adopt(source, values[source.argname])
        if (error := self.batch_errors.get(id(target))) is not None:
            raise error
        return target

    def plan_requests(self, item: pytest.Item, target: Target) -> None:
        """Start to send the requests of all items of the item's target, if that was not done before."""
        source = target_source(item)
        if source is not None and source not in self.planned and not self.run.settings.batch_submit:
            others = (other for other in item.session.items if target_source(other) == source)
            self.run.plan(target, analyses_of(others, last_only=without_interim_analyses(self.config)))
            self.planned.add(source)

    def target_of_python_test(self, request: pytest.FixtureRequest) -> Target:
        """Return the target of a Python test, which is the value of the fixture `fairness_target`."""
        value: object = request.getfixturevalue(TARGET_FIXTURE)
        definition, name = request._get_active_fixturedef(TARGET_FIXTURE), target_name_of(request.node)
        if name is not None:
            return self.run.targets.named(name)
        return self.targets.get(definition) or self._adopt(definition, value)

    def configured_target(self, name: str | None) -> Target | None:
        """Return the target that the settings name, for the fixture `fairness_target`; `None` if no test will run."""
        if self.config.getoption("setuponly", False):
            return None
        targets = self.run.settings.targets
        if targets and name not in targets:
            raise TargetError(
                f"{TARGET_FIXTURE}: there are several targets ({', '.join(targets)}), but the test is not repeated "
                "for each target. Give the test function one of these fixtures as an argument: "
                f"{', '.join(sorted(REQUEST_FIXTURES))}."
            )
        return self.run.targets.named(name if targets else None)

    def _adopt(self, definition: FixtureDef[Any], value: object) -> Target:
        name = fixture_name(definition, self.config.rootpath)
        if definition.scope != "session":
            raise TargetError(
                f"{name.rpartition('::')[0]}: the fixture fairness_target has scope={definition.scope!r}, but all "
                "tests need the same target, because their requests are sent together. Give the fixture "
                "scope='session'."
            )
        target = self.targets[definition] = self.run.targets.from_value(value, name)
        # The engine must stop before the fixture tears its target down.
        definition.addfinalizer(partial(self.run.engines.engine(target).stop, self.stop_grace))
        return target


# Header of a run, which shows the targets, the selected items and the number of requests to send.

DEFAULT = "no `fairness_target` is set: this run {} the bundled demonstration model"
"""Text about the default target, to be filled with `audits` in the header and with `audited` in the summary."""


@dataclass(frozen=True)
class Header:
    """Description of a run after collection.

    Attributes:
        lines: lines for the terminal: one for each target, judge model and embedding model, and a warning if the
            default target is used.
        audits: number of selected pytest items that are audits (see `is_audit`), including skipped items.
        uses_default_target: whether any item uses the default target because no target is named; skipped items do not
            count.
        file_notes: what was assumed in order to read data files, which is also among the lines.
    """

    lines: Sequence[str] = ()
    audits: int = 0
    uses_default_target: bool = False
    file_notes: Sequence[str] = ()

    def wrapped(self, width: int) -> list[str]:
        return [part for line in self.lines for part in wrap(line, width, hanging="  ")]

    def send(self, run: Run) -> None:
        """Send the header from a worker of pytest-xdist to the controller, through the store."""
        run.store.cache.put(_key(run), asdict(self))

    @classmethod
    def receive(cls, run: Run) -> Header | None:
        """Return the header that a worker has sent; `None` if no worker has sent a header."""
        return run.store.cache.get(_key(run), lambda plain: cls(**plain)) if run.settings.store.exists() else None


def header(config: pytest.Config, run: Run, items: Sequence[pytest.Item]) -> Header:
    """Return the header of the run, with the targets and the numbers of selected items and of requests."""
    by_target: dict[TargetSource | None, list[pytest.Item]] = {}
    for item in items:
        source = target_source(item)
        if (source is not None or probe_item_of(item) is not None) and not is_skipped(item):
            by_target.setdefault(source, []).append(item)
    selected = [item for own in by_target.values() for item in own]
    probe_items = [probe_item for item in selected if (probe_item := probe_item_of(item)) is not None]
    default = any(uses_default_target(item, run.settings) for item in selected)
    sends = not any(config.getoption(name, False) for name in ("collectonly", "setuponly", "fairness_dry_run"))
    lines = [_target_line(config, run, source, own, sends=sends) for source, own in by_target.items()]
    if run.base is not None:
        again = ", whose prompts and target are asked again (up to twice the requests)" if run.control else ""
        lines.append(f"judged by the baselines of {printable(run.base.name)}{again}")
    lines += _equal_prompt_lines(probe_items) if sends else []
    lines += _small_sample_lines(probe_items)
    lines += _model_lines(run, probe_items)
    file_notes = []
    for path in dict.fromkeys(path for item in probe_items for path in item.probe.data_files):
        with suppress(FairnessError, OSError):  # reported where the file is read
            file_notes += [f"{display_path(path, run.settings.root)} {note}" for note in table.notes(path)]
    lines += file_notes
    if default:
        lines.append(DEFAULT.format("audits"))
    lines += _equal_item_lines(probe_items)
    return Header([f"fairness: {line}" for line in lines], sum(map(is_audit, items)), default, file_notes)


def _target_line(
    config: pytest.Config, run: Run, source: TargetSource | None, items: Sequence[pytest.Item], *, sends: bool
) -> str:
    """Return a target's line: `openai:gpt-5 (https://api.openai.com/v1) · 2 probes, 5 items · 40 requests to send`.

    The source is `None` for items whose answers are in files. The line has the number of requests if the run `sends`
    requests.
    """
    own = [item for item in items if probe_item_of(item) is not None]
    tests = len(items) - len(own)
    selected = [counted(len({item.path for item in own}), "probe"), counted(len(own), "item")] if own else []
    selected += [counted(tests, "Python test")] if tests else []
    if source is None:
        return f"no target · {', '.join(selected)} · answers are read from files"
    target = None
    if isinstance(source, str):
        target = run.targets.named(source)
        name = f"{source}={_described(target)}"
    elif is_from_settings(source):
        target = run.targets.named()
        name = _described(target)
    else:
        name = fixture_name(source, config.rootpath)
    parts = [printable(name), ", ".join(selected)]
    if sends and own:
        analyses = list(analyses_of(own, last_only=without_interim_analyses(config) or run.settings.in_batches))
        parts.append(_requests(run, target, analyses) + (", plus requests of the Python tests" if tests else ""))
    return " · ".join(parts)


def _requests(run: Run, target: Target | None, analyses: Sequence[ProbeItem]) -> str:
    try:
        found = count_requests(run, target, analyses)
    except StoreError:  # the items that need the store report the error
        target, found = None, count_requests(run, None, analyses)
    by_batch = run.settings.in_batches and target is not None and has_batches(target)
    turns = any(item.probe.follow_ups.are_turns for item in analyses)
    recorded = f"{found.recorded:,} recorded"
    recorded += "" if found.oldest is None else f" (oldest {age(run.started - found.oldest)})"
    if run.settings.replay:
        missing = f", {found.to_send:,} not recorded" if target is not None and found.to_send else ""
        return f"no request is sent, {recorded}{missing}"
    part = f" (shard {run.settings.shard})" if run.settings.shard else ""
    part += " by batch" if by_batch else ""
    if turns:
        one_by_one = " (later turns of conversations are sent one by one)"
        part += one_by_one if by_batch else " with all turns of conversations"
    if target is None:
        return f"at most {counted(found.to_send, 'request')} to send{part}"
    action = "collect" if by_batch and run.settings.batch_collect else "send"
    most = "at most " if turns and found.to_send else ""
    return f"{most}{counted(found.to_send, 'request')} to {action}{part}, {recorded}"


def _equal_prompt_lines(items: Iterable[ProbeItem]) -> list[str]:
    """Return a line for each probe with equal prompts: `people · 1,000 records, 40 different prompts · …`."""
    lines: dict[str, None] = {}
    for probe in {id(item.probe): item.probe for item in items}.values():
        with suppress(FairnessError):  # the item's set-up reports the error
            if text := probe.equal_prompts_text:
                one = "share one answer (temperature 0)" if probe.shares_answers else "are asked separately"
                lines[f"{printable(probe.name)} · {text} · equal prompts {one}"] = None
    return list(lines)


def _small_sample_lines(items: Iterable[ProbeItem]) -> list[str]:
    """Return a line for each probe whose names or prompts are too few for a significant result."""
    lines: dict[str, None] = {}
    for item in items:
        probe, alpha = item.probe, item.planned_alpha
        if not isinstance(probe, GenerationProbe):
            continue
        with suppress(FairnessError):  # the item's set-up reports the error
            for unit, (numbers, p_value) in probe.smallest_p_values(item.labels).items():
                if p_value > alpha:
                    few = f"{numbers[0]} + {numbers[1]} {unit} cannot show a difference"
                    needed = f"p is {p_value:.2g} at best, and {alpha:.2g} is needed"
                    lines[f"{printable(probe.name)} · {few}: {needed}. List more {unit}"] = None
    return list(lines)


def _model_lines(run: Run, items: Sequence[ProbeItem]) -> list[str]:
    judged = {item.file for item in items if item.probe.reading.judge_votes}
    lines, judge = [], run.targets.judge
    if judged and judge is not None:
        lines.append(f"judge {printable(_described(judge))} · reads the answers of {counted(len(judged), 'probe')}")
    counts: Counter[str] = Counter()
    for item in items:
        with suppress(TargetError):  # the item's set-up reports the error
            if (embedder := run.targets.embedder(item)) is not None:
                counts[_described(embedder)] += 1
    return lines + [
        f"embeddings {printable(name)} · embeds the answers of {counted(n, 'item')}" for name, n in counts.items()
    ]


def _equal_item_lines(items: Iterable[ProbeItem]) -> list[str]:
    """Return a line for each probe with an item that stands for others: `songs: snsr[age] is also snsv[age]`."""
    by_probe: dict[str, dict[str, None]] = {}
    for item in items:
        if item.stands_for:
            own = f"{item.audit_name}[{item.subject}] is also {joined(item.stands_for)}"
            by_probe.setdefault(item.probe.name, {})[own] = None
    return [
        f"{printable(name)}: {printable('; '.join(own))} (two values, one number)" for name, own in by_probe.items()
    ]


def _described(target: Target) -> str:
    address: str | None = getattr(target, "address", None)
    return target.name if address is None else f"{target.name} ({address})"


def _key(run: Run) -> str:
    return sha256(f"header of the run {run.id.name}".encode()).hexdigest()


# Option `--fairness-dry-run`, which prints the requests that the selected tests would send, and runs no test.


def dry_run_lines(config: pytest.Config, run: Run, items: Iterable[pytest.Item]) -> list[str]:
    """Return the lines of a dry run: the requests that the selected items would send."""
    selected: dict[tuple[str, str | None], list[pytest.Item]] = defaultdict(list)
    tests = 0
    for item in items:
        if is_skipped(item):
            continue
        if (probe_item := probe_item_of(item)) is not None:
            selected[item.nodeid.partition("::")[0], probe_item.target].append(item)
        elif not REQUEST_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            tests += 1
    forecaster = Forecaster(run, last_only=without_interim_analyses(config) or run.settings.in_batches)
    probes = []
    for (file, name), own in selected.items():
        target = run.targets.named(name) if is_from_settings(target_source(own[0])) else None
        probes.append((file, [item.stash[PROBE_ITEM] for item in own], target))
    if run.settings.plan is not None:
        return plan_lines(run, forecaster, probes, run.settings.plan)
    for probe in probes:
        forecaster.add(*probe)
    lines = forecaster.lines(tests)
    if run.control is not None:
        lines.append(
            f"not counted: requests of the control arm, up to as many again ({printable(run.control.revision)})"
        )
    return [*lines, "no report is written"] if config.getoption("fairness_report") else lines
