"""The lines of pytest's header that say whom a run audits and what it is going to send."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.errors import StoreError, TargetError
from pytest_fairness.pytest_integration.items import (
    FairnessItem,
    asked_by,
    asks_default,
    is_audit,
    is_ours,
    looks_of,
    name_of,
)
from pytest_fairness.reports.formatting import age, counted, printable
from pytest_fairness.run import Run
from pytest_fairness.run.forecast import RequestCount, count_requests

if TYPE_CHECKING:
    from _pytest.fixtures import FixtureDef

    from pytest_fairness.targets.base import Target

DEFAULT = "no `fairness_target` is set: this run {} the bundled demonstration model"
"""Said in the header and in the summary; the verb differs."""


@dataclass(frozen=True)
class Header:
    """Description of a run after collection.

    Attributes:
        lines: for the terminal, a line a target.
        audits: selected items that audit, skipped ones included.
        asks_default: whether any of them asks the default target because nobody named one.
    """

    lines: Sequence[str] = ()
    audits: int = 0
    asks_default: bool = False

    def send(self, run: Run) -> None:
        """Hand the header over to the process that the user started, where pytest-xdist's workers collect.

        Raises:
            StoreError: the store, which is where processes meet, cannot be written.
        """
        run.store.cache.put(_key(run), asdict(self))

    @classmethod
    def receive(cls, run: Run) -> Header | None:
        """Return the header that a worker has sent; `None` where there is none.

        Raises:
            StoreError: the store cannot be read.
        """
        return run.store.cache.get(_key(run), lambda found: cls(**found)) if run.settings.store.exists() else None


def header(config: pytest.Config, run: Run, items: Sequence[pytest.Item]) -> Header:
    """Describe the selected items: who is asked by how many of them, and how many requests that takes.

    Args:
        config: pytest's.
        run: nothing of it is asked.
        items: all selected items, in their order.
    """
    asking: dict[FixtureDef[Any] | str | None, list[pytest.Item]] = {}
    audits = 0
    for item in items:
        audits += is_audit(item)
        asked = asked_by(item)
        if (asked is not None or isinstance(item, FairnessItem)) and item.get_closest_marker("skip") is None:
            asking.setdefault(asked, []).append(item)
    default = any(asks_default(item, run.settings) for own in asking.values() for item in own)
    sends = not any(config.getoption(name, False) for name in ("collectonly", "setuponly", "fairness_dry_run"))
    lines = [_line(config, run, asked, own, sends=sends) for asked, own in asking.items()]
    lines += _judge(run, [item for own in asking.values() for item in own])
    lines += _embedders(run, [item for own in asking.values() for item in own])
    if default:
        lines.append(DEFAULT.format("audits"))
    return Header([f"fairness: {line}" for line in lines], audits, default)


def _line(
    config: pytest.Config,
    run: Run,
    asked: FixtureDef[Any] | str | None,
    items: Sequence[pytest.Item],
    *,
    sends: bool,
) -> str:
    """Return `openai:gpt-5 (https://api.openai.com/v1) · 2 probes, 5 items · 40 requests to send, 0 recorded`."""
    own = [item for item in items if isinstance(item, FairnessItem)]
    tests = len(items) - len(own)
    selected = [counted(len({item.path for item in own}), "probe"), counted(len(own), "item")] if own else []
    selected += [counted(tests, "Python test")] if tests else []
    if asked is None:
        return f"no target is asked · {', '.join(selected)} · answers are in files"
    known = isinstance(asked, str) or is_ours(asked)
    target = run.targets.named(asked if isinstance(asked, str) else None) if known else None
    if target is None:
        who = name_of(asked, config.rootpath)  # type: ignore[arg-type] # a name is a known target
    else:
        who = f"{asked}={_shown(target)}" if isinstance(asked, str) else _shown(target)
    parts = [printable(who), ", ".join(selected)]
    if sends and own:
        looks = list(looks_of(own, rebaseline=config.getoption("fairness_rebaseline")))
        parts.append(_requests(run, target, looks) + (", and what the tests ask" if tests else ""))
    return " · ".join(parts)


def _requests(run: Run, target: Target | None, looks: Sequence[Any]) -> str:
    try:
        count = count_requests(run, target, looks)
    except StoreError:  # whoever wants something of it says so
        target, count = None, count_requests(run, None, looks)
    return _told(run, count, known=target is not None)


def _told(run: Run, count: RequestCount, *, known: bool) -> str:
    oldest = "" if count.oldest is None else f" (oldest {age(run.started - count.oldest)})"
    if run.settings.replay:
        missing = f", {count.to_send:,} not recorded" if known and count.to_send else ""
        return f"no request is sent, {count.recorded:,} recorded{oldest}{missing}"
    if not known:
        return f"at most {counted(count.to_send, 'request')} to send"
    return f"{counted(count.to_send, 'request')} to send, {count.recorded:,} recorded{oldest}"


def _judge(run: Run, items: Sequence[pytest.Item]) -> list[str]:
    judged = {item.path for item in items if isinstance(item, FairnessItem) and item.probe_item.probe.judging}
    if not judged or run.targets.judge is None:
        return []
    return [f"judge {printable(_shown(run.targets.judge))} · reads the answers of {counted(len(judged), 'probe')}"]


def _embedders(run: Run, items: Sequence[pytest.Item]) -> list[str]:
    """Return a line for each model that is sent answers to embed."""
    counts: dict[str, int] = {}
    for item in items:
        if isinstance(item, FairnessItem) and item.probe_item.embedder is not None:
            with suppress(TargetError):  # the item's set-up tells
                embedder = run.targets.embedder(item.probe_item)
                name = _shown(embedder) if embedder else ""
                counts[name] = counts.get(name, 0) + 1
    return [f"embeddings {printable(name)} · of the answers of {counted(n, 'item')}" for name, n in counts.items()]


def _shown(target: Target) -> str:
    address: str | None = getattr(target, "address", None)
    return target.name if address is None else f"{target.name} ({address})"


def _key(run: Run) -> str:
    return sha256(f"header of the run {run.id.name}".encode()).hexdigest()
