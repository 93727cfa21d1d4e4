"""Probe files of a run and their probe items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_fairness.errors import FairnessError, ProbeError
from pytest_fairness.probes import Probe
from pytest_fairness.probes.audit_settings import ExpectedFailure
from pytest_fairness.probes.diagnostics import nearest, quoted, suggestion
from pytest_fairness.probes.file_names import name_key
from pytest_fairness.pytest_integration.items.item_targets import is_overridden, may_be_overridden, shown_path
from pytest_fairness.run import ProbeItem, Run, items_of

PROBE_SUFFIXES = frozenset({".yaml", ".yml"})
SHOWN_IDS = 10
"""Maximum number of item ids in a message."""


class ProbeFiles:
    """Collected probe files; all probes must have different names, because baselines are stored by name.

    Attributes:
        faulty: whether a file could not be loaded.
    """

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._root, self._run = config.rootpath, run
        self._paths: dict[str, tuple[str, Path]] = {}
        self.faulty = False

    def collect(self, path: Path, file: pytest.Collector) -> list[ProbeItem]:
        """Return the items of a probe file; if targets have names, each item once for each target.

        Args:
            path: the file.
            file: the file's collector, by which pytest finds the conftest files that may override the target.

        Raises:
            ProbeError: the file has errors, or another probe has the same name.
        """
        probe = self._run.load(path)
        self._run.targets.require_judge(probe)
        name, other = self._paths.setdefault(name_key(probe.name), (probe.name, path))
        if other != path:
            same = (
                f"has the name {name!r}, too"
                if name == probe.name
                else f"has the name {name!r}, which differs from {probe.name!r} only in letter case"
            )
            raise ProbeError(
                f"{shown_path(path, self._root)}: {shown_path(other, self._root)} {same}. "
                "Give one of the two probes another `name:`, because baselines are stored by name."
            )
        return self._items(probe, named=not is_overridden(file))

    def require_ids(self, config: pytest.Config) -> None:
        """Raise `pytest.UsageError` if the command line names an item that its probe file does not have.

        pytest itself would say only that the item is not found, and nothing at all under pytest-xdist.
        """
        for argument in config.args:
            file, colons, name = argument.partition("::")
            path = (config.invocation_params.dir / file).resolve()
            if not colons or path.suffix.lower() not in PROBE_SUFFIXES:
                continue
            try:
                probe = self._run.load(path)
                items = self._all_items(probe) if may_be_overridden(config) else self._items(probe, named=True)
            except FairnessError:
                continue  # the collection reports the error
            ids = [item.id for item in items]
            # pytest takes the name of an audit for all of its items.
            if name not in {known for item in ids for known in (item, item.partition("[")[0])}:
                judged = next(
                    (f": the item {item.id} measures its number" for item in items if name in item.stands_for), ""
                )
                raise pytest.UsageError(f"{file} has no item {name!r}{judged or _unknown_item_hint(name, ids)}")

    def items_of_id(self, path: Path, name: str) -> list[ProbeItem]:
        """Return the items of a probe file that have this id, which may end with a target's name."""
        return [item for item in self._all_items(self._run.load(path)) if item.id == name]

    def shown_path_of(self, name: str) -> str | None:
        """Return the path of the probe file with this probe name, for messages; `None` if no probe has the name."""
        _, path = self._paths.get(name_key(name), (name, None))
        return None if path is None else shown_path(path, self._root)

    def _require_groups(self, probe: Probe, items: Sequence[ProbeItem]) -> None:
        """Raise `ProbeError` if the key `xfail` of an audit names a group for which the audit has no item."""
        errors = []
        for audit, settings in probe.audits.items():
            if isinstance(settings.xfail, ExpectedFailure):
                subjects = [
                    item.subject
                    for item in items
                    if item.subject is not None
                    and (item.audit_name == audit or f"{audit}[{item.subject}]" in item.stands_for)
                ]
                where = f"{shown_path(probe.source.path, self._root)}:{probe.source.line_of(audit)}"
                errors += [
                    f"{where}: audits.{audit}.xfail: unknown group {quoted(group)}{suggestion(group, subjects)}"
                    for group in settings.xfail.groups or ()
                    if group not in subjects
                ]
        if errors:
            raise ProbeError("\n".join(errors))

    def _all_items(self, probe: Probe) -> list[ProbeItem]:
        """Return the items of a probe; if targets have names, also the items without a target's name in their ids."""
        return [
            *self._items(probe, named=True),
            *(self._items(probe, named=False) if self._run.settings.targets else ()),
        ]

    def _items(self, probe: Probe, *, named: bool) -> list[ProbeItem]:
        """Return the items of a probe; if `named` is set, an item for each target that has a name."""
        items = items_of(probe, self._run.settings.trials)
        self._require_groups(probe, items)
        targets = self._run.settings.targets
        if not targets or not named or probe.responses is not None:
            return items
        # The targets alternate from item to item, so that all targets are busy from the start.
        return [replace(item, target=name) for item in items for name in targets]


def _unknown_item_hint(name: str, ids: Sequence[str]) -> str:
    """Return the end of the message about an unknown item: the most similar item, and the items of the same audit."""
    near = nearest(name, ids)
    audit = name.partition("[")[0]
    listed = [item for item in ids if item.partition("[")[0] == audit] or ids
    more = f" and {len(listed) - SHOWN_IDS:,} more" if len(listed) > SHOWN_IDS else ""
    whose = f"The items of {audit}" if len(listed) < len(ids) else "Its items"
    meant = "" if near is None else f": did you mean {near!r}?"
    return f"{meant or '.'} {whose} are {', '.join(listed[:SHOWN_IDS])}{more}."
