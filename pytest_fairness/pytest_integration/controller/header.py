"""Header of a run, which shows the targets, the selected items and the number of requests to send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.errors import FairnessError, StoreError, TargetError
from pytest_fairness.plurals import counted, joined
from pytest_fairness.probes import table
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.pytest_integration.configuration import without_interim_analyses
from pytest_fairness.pytest_integration.items.item_targets import (
    analyses_of,
    fixture_name,
    is_audit,
    is_from_settings,
    is_skipped,
    probe_item_of,
    target_source,
    uses_default_target,
)
from pytest_fairness.reports.formatting import age, printable
from pytest_fairness.reports.text_layout import wrap
from pytest_fairness.run import ProbeItem, Run
from pytest_fairness.run.forecast import RequestCount, count_requests
from pytest_fairness.targets.batch_client import has_batches

if TYPE_CHECKING:
    from pytest_fairness.pytest_integration.items.item_targets import TargetSource
    from pytest_fairness.targets.base import Target

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
        """Return the lines for a terminal of `width` columns."""
        return [part for line in self.lines for part in wrap(line, width, hanging="  ")]

    def send(self, run: Run) -> None:
        """Send the header from a worker of pytest-xdist to the controller, through the store.

        Raises:
            StoreError: the store cannot be written.
        """
        run.store.cache.put(_key(run), asdict(self))

    @classmethod
    def receive(cls, run: Run) -> Header | None:
        """Return the header that a worker has sent; `None` if no worker has sent a header.

        Raises:
            StoreError: the store cannot be read.
        """
        return run.store.cache.get(_key(run), lambda plain: cls(**plain)) if run.settings.store.exists() else None


def header(config: pytest.Config, run: Run, items: Sequence[pytest.Item]) -> Header:
    """Return the header of the run, which lists the targets, the number of selected items and the number of requests.

    Args:
        config: pytest's configuration.
        run: the run.
        items: all selected items, in their order.
    """
    by_target: dict[TargetSource | None, list[pytest.Item]] = {}
    for item in items:
        source = target_source(item)
        if (source is not None or probe_item_of(item) is not None) and not is_skipped(item):
            by_target.setdefault(source, []).append(item)
    selected = [item for own in by_target.values() for item in own]
    default = any(uses_default_target(item, run.settings) for item in selected)
    sends = not any(config.getoption(name, False) for name in ("collectonly", "setuponly", "fairness_dry_run"))
    lines = [_target_line(config, run, source, own, sends=sends) for source, own in by_target.items()]
    lines += _equal_prompt_lines(selected) if sends else []
    lines += _judge_lines(run, selected)
    lines += _embedder_lines(run, selected)
    file_notes = _data_file_notes(run, selected)
    lines += file_notes
    if default:
        lines.append(DEFAULT.format("audits"))
    lines += _equal_item_lines(selected)
    return Header([f"fairness: {line}" for line in lines], sum(map(is_audit, items)), default, file_notes)


def _data_file_notes(run: Run, items: Sequence[pytest.Item]) -> list[str]:
    """Return what was assumed in order to read the data files of the items' probes; see `table.notes`."""
    probes = {id(item.probe): item.probe for item in map(probe_item_of, items) if item is not None}
    found = []
    for path in dict.fromkeys(path for probe in probes.values() for path in probe.data_files):
        with suppress(FairnessError, OSError):  # reported where the file is read
            found += [f"{display_path(path, run.settings.root)} {note}" for note in table.notes(path)]
    return found


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
        count = count_requests(run, target, analyses)
    except StoreError:  # the items that need the store report the error
        target, count = None, count_requests(run, None, analyses)
    by_batch = run.settings.in_batches and target is not None and has_batches(target)
    turns = any(item.probe.follow_ups.are_turns for item in analyses)
    return _counts(run, count, known=target is not None, by_batch=by_batch, turns=turns)


def _counts(run: Run, count: RequestCount, *, known: bool, by_batch: bool, turns: bool) -> str:
    oldest = "" if count.oldest is None else f" (oldest {age(run.started - count.oldest)})"
    part = f" (shard {run.settings.shard})" if run.settings.shard else ""
    part += " by batch" if by_batch else ""
    if turns:
        part += (
            " (later turns of conversations are sent one by one)" if by_batch else " with all turns of conversations"
        )
    if run.settings.replay:
        missing = f", {count.to_send:,} not recorded" if known and count.to_send else ""
        return f"no request is sent, {count.recorded:,} recorded{oldest}{missing}"
    if not known:
        return f"at most {counted(count.to_send, 'request')} to send{part}"
    action = "collect" if by_batch and run.settings.batch_collect else "send"
    most = "at most " if turns and count.to_send else ""
    return f"{most}{counted(count.to_send, 'request')} to {action}{part}, {count.recorded:,} recorded{oldest}"


def _equal_prompt_lines(items: Sequence[pytest.Item]) -> list[str]:
    """Return a line for each probe with equal prompts: `people · 1,000 records, 40 different prompts · …`."""
    lines: dict[str, None] = {}
    for item in items:
        if (probe_item := probe_item_of(item)) is not None:
            with suppress(FairnessError):  # the item's set-up reports the error
                if text := probe_item.probe.equal_prompts_text:
                    one = (
                        "share one answer (temperature 0)"
                        if probe_item.probe.shares_answers
                        else "are asked separately"
                    )
                    lines[f"{printable(probe_item.probe.name)} · {text} · equal prompts {one}"] = None
    return list(lines)


def _judge_lines(run: Run, items: Sequence[pytest.Item]) -> list[str]:
    measured = [(item.path, probe_item) for item in items if (probe_item := probe_item_of(item)) is not None]
    judged = {path for path, probe_item in measured if probe_item.probe.reading.judge_votes}
    if not judged or run.targets.judge is None:
        return []
    return [f"judge {printable(_described(run.targets.judge))} · reads the answers of {counted(len(judged), 'probe')}"]


def _embedder_lines(run: Run, items: Sequence[pytest.Item]) -> list[str]:
    """Return a line for each embedding model with its name and the number of items that use it."""
    counts: Counter[str] = Counter()
    for item in items:
        probe_item = probe_item_of(item)
        with suppress(TargetError):  # the item's set-up reports the error
            if probe_item is not None and (embedder := run.targets.embedder(probe_item)) is not None:
                counts[_described(embedder)] += 1
    return [f"embeddings {printable(name)} · embeds the answers of {counted(n, 'item')}" for name, n in counts.items()]


def _equal_item_lines(items: Sequence[pytest.Item]) -> list[str]:
    """Return a line for each probe with an item that stands for others: `songs: snsr[age] is also snsv[age]`."""
    by_probe: dict[str, dict[str, None]] = {}
    for item in items:
        probe_item = probe_item_of(item)
        if probe_item is not None and probe_item.stands_for:
            own = f"{probe_item.audit_name}[{probe_item.subject}] is also {joined(probe_item.stands_for)}"
            by_probe.setdefault(probe_item.probe.name, {})[own] = None
    return [
        f"{printable(name)}: {printable('; '.join(own))} (two values, one number)" for name, own in by_probe.items()
    ]


def _described(target: Target) -> str:
    address: str | None = getattr(target, "address", None)
    return target.name if address is None else f"{target.name} ({address})"


def _key(run: Run) -> str:
    return sha256(f"header of the run {run.id.name}".encode()).hexdigest()
