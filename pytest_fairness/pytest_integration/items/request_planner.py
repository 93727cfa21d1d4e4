"""Planner of requests: at the first item of a target, the requests of all items of this target are queued."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.asking.timing import DEFAULT_TIMING
from pytest_fairness.errors import FairnessError, TargetError
from pytest_fairness.pytest_integration.configuration import last_look_only
from pytest_fairness.pytest_integration.items.asked_targets import (
    ASKING,
    TARGET_FIXTURE,
    active_target,
    asked_by,
    fixture_name,
    looks_of,
    name_asked,
)
from pytest_fairness.pytest_integration.progress import ProgressLine
from pytest_fairness.records import Request, Response
from pytest_fairness.run import Run

if TYPE_CHECKING:
    from _pytest.fixtures import FixtureDef

    from pytest_fairness.pytest_integration.items.asked_targets import Asked
    from pytest_fairness.targets.base import Target


class RequestPlanner:
    """Planner of one process's requests; all requests of a target are planned once, for all its items.

    Attributes:
        stop_grace: seconds to wait at the end for requests in flight, whose answers other workers may need too.
    """

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config, self._run = config, run
        self.stop_grace = run.settings.timeout if hasattr(config, "workerinput") else DEFAULT_TIMING.stop_grace
        self._last_look_only = last_look_only(config)
        self._progress = ProgressLine(config)
        self._targets: dict[Asked, Target] = {}
        self._planned: set[Asked] = set()

    def progress(self, target: Target) -> AbstractContextManager[None]:
        """Return a context in which the progress line shows the requests of this target."""
        return self._progress.shown(self._run.engines.engine(target).progress)

    def target_of(self, item: pytest.Item) -> Target | None:
        """Return the target of a probe item; `None` if the item has none.

        The first call for a target plans the requests of all its items.
        """
        asked = asked_by(item)
        if asked is None:
            return None
        if asked not in self._planned:
            self._plan(item, asked)
        return self._targets[asked]

    def target_for(self, request: pytest.FixtureRequest) -> Target:
        """Return the target of a Python test, which is the value of the fixture `fairness_target`."""
        definition, value = active_target(request)
        name = name_asked(request.node)
        if name is not None:
            return self._run.targets.named(name)
        return self._targets.get(definition) or self._adopt(definition, value)

    def target_of_settings(self, name: str | None = None) -> Target | None:
        """Return the target that the settings name, for the fixture `fairness_target`; `None` if no test will run.

        Args:
            name: name of the target, if there are several.

        Raises:
            TargetError: there are several targets, but no name is given.
        """
        if self._config.getoption("setuponly", False):
            return None
        targets = self._run.settings.targets
        name = name if name in targets else None
        if targets and name is None:
            raise TargetError(
                f"{TARGET_FIXTURE}: there are several targets ({', '.join(targets)}), and this test has no argument by "
                f"which it is run for each of them. Add one of the fixtures {', '.join(sorted(ASKING))} as an argument."
            )
        return self._run.targets.named(name)

    def ask(self, target: Target, requests: Sequence[Request]) -> list[Response | FairnessError]:
        """Send the requests of one Python test, and wait for the responses; see `Engine.answers`."""
        with self.progress(target):
            return self._run.engines.ask(target, requests)

    def _plan(self, item: pytest.Item, asked: Asked) -> None:
        if isinstance(asked, str):
            target = self._targets[asked] = self._run.targets.named(asked)
        else:
            values: dict[str, object] = getattr(item, "funcargs", {})
            target = self._targets.get(asked) or self._adopt(asked, values[asked.argname])
        others = (other for other in item.session.items if asked_by(other) == asked)
        self._run.plan(target, looks_of(others, last_only=self._last_look_only))
        self._planned.add(asked)

    def _adopt(self, definition: FixtureDef[Any], value: object) -> Target:
        name = fixture_name(definition, self._config.rootpath)
        if definition.scope != "session":
            raise TargetError(
                f"{name.rpartition('::')[0]}: the fixture fairness_target has scope={definition.scope!r}, but "
                "requests are sent ahead for all tests. Give the fixture scope='session'."
            )
        target = self._run.targets.from_value(value, name)
        self._targets[definition] = target
        # The engine must stop before the fixture tears its target down.
        definition.addfinalizer(partial(self._run.engines.engine(target).stop, self.stop_grace))
        return target
