"""Work of each run of pytest that tests need once: they start pytest over a thousand times.

- A run searches all names of each plugin for hooks and fixtures. The names of installed modules stay the same, so those
  that are neither are left out from the second run on. Plugins of a test's own project are searched in each run.
- The version of pluggy, for the header, is read from the metadata of all installed packages.
- Stores and baselines are written to the disk before a run goes on, so that they survive a loss of power. No test loses
  power; what a killed process has written is kept by the system.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.metadata
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import _pytest.config
import _pytest.fixtures
import pluggy

from pytest_fairness.asking import database

INSTALLED = ("_pytest", "pytest_fairness", "xdist")
"""Packages whose plugins are searched once."""


def prepare() -> None:
    """Spare all further runs of this process this work."""
    vars(pluggy)["__version__"] = importlib.metadata.version("pluggy")
    vars(pluggy._manager)["dir"] = _names(lambda name, _value: name.startswith("pytest_"))
    vars(_pytest.fixtures)["dir"] = _names(_is_fixture)
    if (search := getattr(pluggy._manager, "_static_hook_attr", None)) is not None:  # since pluggy 1.7
        vars(pluggy._manager)["_static_hook_attr"] = _once_for_modules(search)
    database.SYNCHRONOUS = "OFF"
    vars(os)["fsync"] = lambda _descriptor: None


def prepare_forks() -> None:
    """Spare the processes that this process forks this work, and the import of pytest's own plugins."""
    prepare()
    for name in _pytest.config.default_plugins:
        importlib.import_module(f"_pytest.{name}")
    for name, module in sys.modules.copy().items():
        if name.partition(".")[0] in INSTALLED:
            vars(pluggy._manager)["dir"](module)
            vars(_pytest.fixtures)["dir"](module)


def _names(is_searched: Callable[[str, object], bool]) -> Callable[[object], list[str]]:
    """Return a function `dir` that leaves out other names of an installed plugin from its second call for it on."""
    known: dict[Any, list[str]] = {}

    def names(plugin: object) -> list[str]:
        # Neither hooks nor fixtures are attributes of an installed plugin's object only.
        place: Any = plugin if isinstance(plugin, types.ModuleType | type) else type(plugin)
        if place in known:
            return known[place]
        found = builtins.dir(plugin)
        module = place.__name__ if isinstance(place, types.ModuleType) else place.__module__
        if module.partition(".")[0] in INSTALLED:
            known[place] = [name for name in found if is_searched(name, getattr(place, name, None))]
        return found

    return names


def _once_for_modules(search: Callable[[object, str], object]) -> Callable[[object, str], object]:
    """Return a function that remembers what an installed module has under a name."""
    once = functools.cache(search)

    def found(plugin: object, name: str) -> object:
        is_installed = isinstance(plugin, types.ModuleType) and plugin.__name__.partition(".")[0] in INSTALLED
        return (once if is_installed else search)(plugin, name)

    return found


def _is_fixture(_name: str, value: object) -> bool:
    return hasattr(value, "_fixture_function_marker") or hasattr(value, "_pytestfixturefunction")  # before pytest 8.4
