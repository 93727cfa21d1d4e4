"""Search of pytest's own plugins for fixtures, once in a process; it takes a fifth of a short run inside a test."""

from __future__ import annotations

from functools import cache
from inspect import getattr_static
from types import ModuleType
from typing import Any

from _pytest import fixtures

_search = fixtures.FixtureManager.pytest_plugin_registered
_FIXTURE: type = getattr(fixtures, "FixtureFunctionDefinition", object)
"""Class of the fixtures that a module or class defines; before pytest 8.4, they are functions."""


@cache
def _has_fixtures(source: type | ModuleType) -> bool:
    return any(isinstance(getattr_static(source, name, None), _FIXTURE) for name in dir(source))


def pytest_plugin_registered(self: fixtures.FixtureManager, plugin: Any, plugin_name: str) -> None:
    """Search a plugin for fixtures, unless it is one of pytest's own that have none."""
    source: Any = plugin if isinstance(plugin, ModuleType) else type(plugin)
    name = source.__name__ if isinstance(source, ModuleType) else source.__module__
    if not name.startswith("_pytest.") or _has_fixtures(source):
        _search(self, plugin, plugin_name)


setattr(fixtures.FixtureManager, "pytest_plugin_registered", pytest_plugin_registered)  # noqa: B010 - a method of pytest
