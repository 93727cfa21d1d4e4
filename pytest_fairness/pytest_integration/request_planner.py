"""Who is asked under pytest, and asking ahead: in each process one target a fixture, or name, that says who it is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.asking.timing import DEFAULT_TIMING
from pytest_fairness.errors import FairnessError, TargetError
from pytest_fairness.pytest_integration.items import (
    ASKING,
    TARGET_FIXTURE,
    FairnessItem,
    active_target,
    looks_of,
    name_asked,
    name_of,
)
from pytest_fairness.pytest_integration.progress import ProgressLine
from pytest_fairness.records import Request, Response
from pytest_fairness.run import Run, variants

if TYPE_CHECKING:
    from _pytest.fixtures import FixtureDef

    from pytest_fairness.targets.base import Target


class Asking:
    """The targets of a process, each planned once with all that its items need.

    Attributes:
        patience: seconds that are waited at the end for what is in flight; other workers may be waiting for it too.
    """

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config, self._run = config, run
        self.patience = run.settings.timeout if hasattr(config, "workerinput") else DEFAULT_TIMING.stop_grace
        self._rebaseline: bool = config.getoption("fairness_rebaseline")
        self._progress = ProgressLine(config)
        self._targets: dict[FixtureDef[Any] | str, Target] = {}
        self._planned: set[FixtureDef[Any] | str] = set()

    def progress(self, target: Target) -> AbstractContextManager[None]:
        """Show how far this target is, for as long as it is waited for."""
        return self._progress.shown(self._run.engines.engine(target).progress)

    def target_of(self, item: FairnessItem, asked: FixtureDef[Any] | str) -> Target:
        """Whom a probe item asks, with the questions of all items that ask the same one planned.

        Args:
            item: the item.
            asked: the fixture that says who is asked, or a target's name.
        """
        if asked not in self._planned:
            value = None if isinstance(asked, str) else item.funcargs[asked.argname]
            self._plan(item.session.items, asked, value)
        return self._targets[asked]

    def open_target(self, name: str | None = None) -> Target | None:
        """Whom the settings name; nobody where nothing is going to be asked.

        Args:
            name: which one of several targets.

        Raises:
            TargetError: there are several, and no name.
        """
        if self._config.getoption("setuponly", False):
            return None
        targets = self._run.settings.targets
        name = name if name in targets else None
        if targets and name is None:
            raise TargetError(
                f"{TARGET_FIXTURE}: there are several targets ({', '.join(targets)}), and only tests that take one of "
                f"the fixtures {', '.join(sorted(ASKING))} as an argument are run for each of them."
            )
        return self._run.targets.named(name)

    def target_for(self, request: pytest.FixtureRequest) -> Target:
        """Whom a Python test asks: what `fairness_target` is where the test stands."""
        definition, value = active_target(request)
        name = name_asked(request.node)
        if name is not None:
            return self._run.targets.named(name)
        return self._targets.get(definition) or self._adopt(definition, value)

    def ask(self, target: Target, requests: Sequence[Request]) -> list[Response | FairnessError]:
        """Ask what only this test asks, and wait; see `Engine.answers`."""
        with self.progress(target):
            return self._run.engines.ask(target, requests)

    def _plan(self, items: list[pytest.Item], asked: FixtureDef[Any] | str, value: object) -> None:
        if isinstance(asked, str):
            target = self._targets[asked] = self._run.targets.named(asked)
        else:
            target = self._targets.get(asked) or self._adopt(asked, value)
        peers = (item for item in items if isinstance(item, FairnessItem) and item.asked == asked)
        looks = looks_of(peers, rebaseline=self._rebaseline)
        own_first = self._run.settings.max_requests is not None
        self._run.engines.plan(target, variants.requests(looks, own_first=own_first))
        self._planned.add(asked)

    def _adopt(self, definition: FixtureDef[Any], value: object) -> Target:
        name = name_of(definition, self._config.rootpath)
        if definition.scope != "session":
            raise TargetError(
                f"{name.rpartition('::')[0]}: the fixture fairness_target must have scope='session'; questions are "
                "asked ahead."
            )
        target = self._run.targets.from_value(value, name)
        self._targets[definition] = target
        # What asks must stop before what is asked is torn down.
        definition.addfinalizer(partial(self._run.engines.engine(target).stop, self.patience))
        return target
