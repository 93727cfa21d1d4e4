"""Targets of a run: systems under test, judge model and embedding models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import cast

from pytest_fairness.errors import ProbeError
from pytest_fairness.options import RunSettings
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.run.answering.judging import open_judge
from pytest_fairness.run.items.probe_items import ProbeItem
from pytest_fairness.targets import open_target
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.python_callable import Application, CallableTarget


class OpenTargets:
    """Targets of a run; each target object is created at its first use, and no request is sent.

    Args:
        settings: the run's settings.
        addresses: addresses of the models that another process of the run serves on this machine, by target.
    """

    def __init__(self, settings: RunSettings, addresses: Mapping[str, str]) -> None:
        self._settings = settings
        self._addresses = addresses
        self._opened: dict[str, Target] = {}
        self._embedders: dict[tuple[str, Path], Target] = {}

    def named(self, name: str | None = None) -> Target:
        """Return the target of the settings or, if the settings name several targets, the target with this name.

        Two names of the same target share one target object.
        """
        spec = self._settings.target if name is None else self._settings.targets[name]
        if spec not in self._opened:
            self._opened[spec] = self._open(spec)
        return self._opened[spec]

    def from_value(self, value: object, name: str) -> Target:
        """Return the target that a value stands for: the name of a target, a callable, or a target.

        Args:
            name: name of the target in reports and baselines, if the value is a callable.

        Raises:
            TargetError: the value is neither a valid name, nor a callable, nor a target.
        """
        if isinstance(value, str):
            return self._open(value)
        if hasattr(value, "ask") and hasattr(value, "identity"):
            return cast("Target", value)
        return CallableTarget(cast("Application", value), name, version=self._settings.target_version)

    @property
    def description(self) -> str:
        """Return the names of all targets as one text for reports."""
        named = [f"{name}={self.named(name).name}" for name in self._settings.targets]
        return ", ".join(named) or self.named().name

    @cached_property
    def judge(self) -> Target | None:
        """Return the judge model that the settings name, or `None`."""
        return open_judge(self._settings, self._addresses)

    def require_judge(self, probe: Probe) -> None:
        """Raise `ProbeError` if the probe needs a judge model, but the settings name no judge model."""
        if probe.reading.judge_votes and self._settings.judge is None:
            wanted = "`answer: {judge: true}`" if probe.reading.judging else "`refusals: {by: judge}`"
            raise ProbeError(
                f"{display_path(probe.source.path, probe.source.root)}: a judge model must read the answers "
                f"({wanted}), but none is set. Set `fairness_judge` in the ini file, such as "
                "`fairness_judge = openai:MODEL`."
            )

    def embedder(self, item: ProbeItem) -> Target | None:
        """Return the embedding model for the answers of an item; `None` if the item's audit has no embedding model.

        Raises:
            TargetError: the model cannot be used; see `open_embedder`.
        """
        name = item.models.embedder
        if name is None:
            return None
        folder = item.probe.source.path.parent
        if (name, folder) not in self._embedders:
            # Imported here, because few probes need it.
            from pytest_fairness.targets.embedders import open_embedder

            self._embedders[name, folder] = open_embedder(name, self._settings, folder)
        return self._embedders[name, folder]

    def _open(self, spec: str) -> Target:
        return open_target(spec, self._settings, self._addresses.get(spec.strip()))
