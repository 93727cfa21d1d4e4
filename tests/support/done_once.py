"""Work that pytest does in each run, done once in a process: it takes a fifth of the short runs inside tests."""

from __future__ import annotations

import ast
import warnings
from functools import cache, lru_cache
from inspect import getattr_static
from types import ModuleType
from typing import Any

from _pytest import fixtures
from _pytest._code import code, source

_search = fixtures.FixtureManager.pytest_plugin_registered
_FIXTURE: type = getattr(fixtures, "FixtureFunctionDefinition", object)
"""Class of the fixtures that a module or class defines; before pytest 8.4, they are functions."""


@cache
def _has_fixtures(plugin: Any) -> bool:
    return any(isinstance(getattr_static(plugin, name, None), _FIXTURE) for name in dir(plugin))


def pytest_plugin_registered(self: fixtures.FixtureManager, plugin: Any, plugin_name: str) -> None:
    """Search a plugin for fixtures, unless it is one of pytest's own that have none."""
    searched: Any = plugin if isinstance(plugin, ModuleType) else type(plugin)
    name = searched.__name__ if isinstance(searched, ModuleType) else searched.__module__
    if not name.startswith("_pytest.") or _has_fixtures(searched):
        _search(self, plugin, plugin_name)


@lru_cache(100)
def _tree(text: str) -> ast.AST:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def getstatementrange_ast(
    lineno: int, lines: source.Source, assertion: bool = False, astnode: ast.AST | None = None
) -> tuple[ast.AST, int, int]:
    """Return the statement of a traceback's line; the syntax tree of its file is read once."""
    return source.getstatementrange_ast(lineno, lines, assertion, astnode or _tree(str(lines)))


setattr(fixtures.FixtureManager, "pytest_plugin_registered", pytest_plugin_registered)  # noqa: B010 - a method of pytest
setattr(code, "getstatementrange_ast", getstatementrange_ast)  # noqa: B010 - a function of pytest
