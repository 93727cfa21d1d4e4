"""Planner of requests: at the first item of a target, the requests of all items of this target are queued."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.asking.timing import DEFAULT_TIMING
from pytest_fairness.errors import FairnessError, TargetError
from pytest_fairness.pytest_integration.configuration import without_interim_analyses
from pytest_fairness.pytest_integration.items.item_targets import (
    REQUEST_FIXTURES,
    TARGET_FIXTURE,
    active_target,
    analyses_of,
    fixture_name,
    target_name_of,
    target_source,
)
from pytest_fairness.pytest_integration.progress import ProgressLine
from pytest_fairness.records import Request, Response
from pytest_fairness.run import Run

if TYPE_CHECKING:
    from _pytest.fixtures import FixtureDef

    from pytest_fairness.pytest_integration.items.item_targets import TargetSource
    from pytest_fairness.targets.base import Target


class RequestPlanner:
    """Planner of one process's requests; all requests of a target are planned once, for all its items.

    Attributes:
        errors: errors of targets whose batches could not be sent or collected, by the id of the target object.
        stop_grace: seconds to wait at the end for requests in flight, because other workers may need their answers.
    """

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config, self._run = config, run
        self.stop_grace = run.settings.timeout if hasattr(config, "workerinput") else DEFAULT_TIMING.stop_grace
        self._final_only = without_interim_analyses(config)
        self._progress = ProgressLine(config)
        self._targets: dict[TargetSource, Target] = {}
        self._planned: set[TargetSource] = set()
        self.errors: dict[int, FairnessError] = {}

    def progress(self, target: Target) -> AbstractContextManager[None]:
        """Return a context in which the progress line shows the requests of this target."""
        return self._progress.shown(self._run.engines.engine(target).progress)

    def target_of_probe_item(self, item: pytest.Item) -> Target | None:
        """Return the target of a probe item; `None` if the item's answers are in a file.

        The first call for a target plans the requests of all its items.

        Raises:
            FairnessError: the batches of the target could not be sent or collected.
        """
        source = target_source(item)
        if source is None:
            return None
        if source not in self._planned:
            self._plan(item, source)
        target = self._targets[source]
        if (error := self.errors.get(id(target))) is not None:
            raise error
        return target

    def target_of_python_test(self, request: pytest.FixtureRequest) -> Target:
        """Return the target of a Python test, which is the value of the fixture `fairness_target`."""
        definition, value = active_target(request)
        name = target_name_of(request.node)
        if name is not None:
            return self._run.targets.named(name)
        return self._targets.get(definition) or self._adopt(definition, value)

    def configured_target(self, name: str | None) -> Target | None:
        """Return the target that the settings name, for the fixture `fairness_target`; `None` if no test will run.

        Args:
            name: name of the target; `None` if only one target is set.

        Raises:
            TargetError: there are several targets, but `name` is none of their names.
        """
        if self._config.getoption("setuponly", False):
            return None
        targets = self._run.settings.targets
        name = name if name in targets else None
        if targets and name is None:
            raise TargetError(
                f"{TARGET_FIXTURE}: there are several targets ({', '.join(targets)}), but the test is not repeated "
                "for each target. Give the test function one of these fixtures as an argument: "
                f"{', '.join(sorted(REQUEST_FIXTURES))}."
            )
        return self._run.targets.named(name)

    def ask(self, target: Target, requests: Sequence[Request]) -> list[Response | FairnessError]:
        """Send the requests of one Python test, and return the response or the error of each request."""
        with self.progress(target):
            return self._run.engines.ask(target, requests)

    def _plan(self, item: pytest.Item, source: TargetSource) -> None:
        if isinstance(source, str):
            target = self._targets[source] = self._run.targets.named(source)
        else:
            values: dict[str, object] = getattr(item, "funcargs", {})
            target = self._targets.get(source) or self._adopt(source, values[source.argname])
        if id(target) in self.errors or self._run.settings.batch_submit:
            return
        others = (other for other in item.session.items if target_source(other) == source)
        self._run.plan(target, analyses_of(others, last_only=self._final_only))
        self._planned.add(source)

    def _adopt(self, definition: FixtureDef[Any], value: object) -> Target:
        name = fixture_name(definition, self._config.rootpath)
        if definition.scope != "session":
            raise TargetError(
                f"{name.rpartition('::')[0]}: the fixture fairness_target has scope={definition.scope!r}, but all "
                "tests need the same target, because their requests are sent together. Give the fixture "
                "scope='session'."
            )
        target = self._run.targets.from_value(value, name)
        self._targets[definition] = target
        # The engine must stop before the fixture tears its target down.
        definition.addfinalizer(partial(self._run.engines.engine(target).stop, self.stop_grace))
        return target
