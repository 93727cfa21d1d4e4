"""Control arm (`--fairness-control`): prompts and target of another revision, asked again in the same run."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from pytest_fairness import kinds, probes
from pytest_fairness.baselines.changes import worktree
from pytest_fairness.baselines.entries import Entry
from pytest_fairness.errors import FairnessError, on_one_line
from pytest_fairness.options import RunSettings
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.records import Drift
from pytest_fairness.reports.formatting import plus_minus
from pytest_fairness.reports.view import worse_by
from pytest_fairness.resources import Closing
from pytest_fairness.run.against import BaseRevision
from pytest_fairness.run.engines import Engines, Targets
from pytest_fairness.run.items import ProbeItem, items_of
from pytest_fairness.run.measuring import ItemMeasurement, Measurer
from pytest_fairness.run.results import BaselineComparison, Baselines, verdict_on
from pytest_fairness.stats.intervals import half_width
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.revision import RevisionTarget


class ControlArm(Closing):
    """Measurer of another revision's items with answers of this run, which separates drift from the own change.

    The drift is the change of these items since their baseline: provider, model or served data changed. The own change
    is the difference between the items of the working tree and these items.
    """

    def __init__(
        self,
        base: BaseRevision,
        settings: RunSettings,
        targets: Targets,
        engines: Engines,
        measurer: Measurer,
        baselines: Baselines,
    ) -> None:
        self._base, self._settings = base, settings
        self._targets, self._engines, self._measurer, self._baselines = targets, engines, measurer, baselines
        self._stack = ExitStack()
        self._items: dict[tuple[Path, str | None], list[ProbeItem]] = {}
        self._opened: dict[str, Target] = {}

    @property
    def revision(self) -> str:
        """Return the other revision with its commit."""
        return self._base.name

    def close(self) -> None:
        self._stack.close()

    @cached_property
    def _tree(self) -> tuple[Path, Path]:
        """Folder with the revision's files, and root of the repository."""
        return self._stack.enter_context(worktree(self._settings.root, self._base.revision))

    def compare(
        self, measured: ItemMeasurement, target: Target | None, compared: BaselineComparison
    ) -> BaselineComparison:
        """Return the comparison with the revision's item as measured now, and the drift of that item.

        `compared` is the comparison with the revision's baseline; it stays, with a phrase that says why, if there is no
        such item or it cannot be measured.
        """
        against, entry = compared.against, compared.entry
        if against is None or entry is None or self._base.key_of(measured.item) is None or target is None:
            return compared
        try:
            other = self._measured(measured.item, target, entry)
            drifted = self._baselines.compare(other)
            verdict = verdict_on(other, drifted)
        except FairnessError as error:
            phrases = [*against.phrases, f"no control arm: {on_one_line(error).rstrip('.')}"]
            return replace(compared, against=replace(against, phrases=phrases))
        change, drift = drifted.comparison, Drift(verdict.name, None, None, None, verdict.reason)
        moved = "not compared"
        if change is not None:
            drift = replace(drift, value=change.value, interval=change.interval, p_value=change.p_value)
            moved = worse_by(change.value, other.item.audit.info.unit) + plus_minus(half_width(change.interval))
        told = f"own change against {self._base.name}, asked again; its drift since the baseline: {moved}"
        phrases = [f"{told} ({verdict.name})", *against.phrases]
        against = replace(against, phrases=phrases, drift=drift)
        own_change = self._baselines.compare_runs(measured, other, against.changed)
        return replace(own_change, note="; ".join(phrases), against=against)

    def _measured(self, item: ProbeItem, target: Target, entry: Entry) -> ItemMeasurement:
        """Return the measurement of the revision's own item, with answers of this run.

        Raises:
            FairnessError: the revision has no such item, or its target cannot be asked.
        """
        tree, top = self._tree
        root = tree / os.path.relpath(self._settings.root.resolve(), top)
        names = (display_path(item.file, self._settings.root), entry.file or "")
        path = next((path for name in names if (path := root / name).is_file()), root / names[0])
        asked = self._target(target, entry.target)
        if (path, item.target) not in self._items:
            probe = probes.load(path, kinds.schemas(), root=root, scorers=item.probe.source.scorers)
            found = [replace(each, target=item.target) for each in items_of(probe, self._settings.trials)]
            self._items[path, item.target] = found = [each.analyses[-1] for each in found]
            self._engines.plan(asked, (request for each in found for request in each.requests()))
        wanted = (self._base.key_of(item) or ("", ""))[1]
        own = next((each for each in self._items[path, item.target] if each.id == wanted), None)
        if own is None:
            raise FairnessError(f"{names[0]} of {self._base.name} has no item {wanted}")
        return self._measurer.measure(own, asked)

    def _target(self, target: Target, name: str) -> Target:
        """Return the target with which the revision's baseline was measured; an application in the revision's code."""
        if name == target.name and not name.startswith("python:"):
            return target
        if name not in self._opened:
            self._opened[name] = (
                RevisionTarget(name, self._settings, *self._tree, self._base.name)
                if name.startswith("python:")
                else self._targets.from_value(name, name)
            )
        return self._opened[name]
