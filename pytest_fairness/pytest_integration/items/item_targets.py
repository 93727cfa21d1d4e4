"""Target of a test item; the settings name the target, or the fixture `fairness_target` provides it.

This module uses pytest's private fixture API, because pytest has no public API for items that are not functions.
pytest's own doctest items use it, too.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from pytest_fairness.options import RunSettings
from pytest_fairness.run import ProbeItem

if TYPE_CHECKING:
    from _pytest.fixtures import FixtureDef

    TargetSource: TypeAlias = FixtureDef[Any] | str
    """Source of a target: the target's name in the settings or, for a target without a name, the fixture
    `fairness_target`."""

PROBE_ITEM = pytest.StashKey[ProbeItem]()
"""Key of the probe item in the stash of a pytest item."""
_DEFINITION = pytest.StashKey["FixtureDef[Any] | None"]()
"""Key of the fixture `fairness_target` in the stash of a probe file or Python test."""
TARGET_FIXTURE = "fairness_target"
OWN_MODULE = "pytest_fairness.plugin"
"""Module of the plugin's own fixture `fairness_target`."""
REQUEST_FIXTURES = frozenset({"llm_client", "corpus_generator", TARGET_FIXTURE})
"""Fixtures with which Python tests send requests."""
CHECK_FIXTURE = "fairness_check"
REPEAT_FIXTURE = "__pytest_repeat_step_number"
"""Fixture by which pytest-repeat repeats a test."""


def probe_item_of(item: pytest.Item) -> ProbeItem | None:
    """Return the probe item of a pytest item; `None` for a Python test."""
    return item.stash.get(PROBE_ITEM, None)


def unrepeated_id(item: pytest.Item) -> str:
    """Return the node id of an item without the number that pytest-repeat adds, so that repetitions are one check."""
    callspec = getattr(item, "callspec", None)
    step = callspec.params.get(REPEAT_FIXTURE) if callspec else None
    return item.nodeid if step is None else re.sub(rf"\[{step + 1}-\d+\]$|-{step + 1}-\d+(?=\]$)", "", item.nodeid)


def is_audit(item: pytest.Item) -> bool:
    """Return whether an item belongs to a probe, is marked `fairness`, or uses a fixture of this plugin."""
    return (
        probe_item_of(item) is not None
        or item.get_closest_marker("fairness") is not None
        or not (REQUEST_FIXTURES | {CHECK_FIXTURE}).isdisjoint(getattr(item, "fixturenames", ()))
    )


def is_skipped(item: pytest.Item) -> bool:
    """Return whether an item is marked with `skip`."""
    return item.get_closest_marker("skip") is not None


def target_source(item: pytest.Item) -> TargetSource | None:
    """Return the name or the fixture of an item's target; `None` if the item sends no request."""
    probe_item = probe_item_of(item)
    if not (probe_item.asks if probe_item else not REQUEST_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))):
        return None
    return target_name_of(item) or _definition(item)


def target_name_of(item: pytest.Item) -> str | None:
    """Return the name of an item's target; `None` if the target has no name, or a fixture provides it."""
    if (probe_item := probe_item_of(item)) is not None:
        return probe_item.target
    callspec = getattr(item, "callspec", None)
    name = callspec.params.get(TARGET_FIXTURE) if callspec else None
    return name if isinstance(name, str) and not is_overridden(item) else None


def is_from_settings(source: TargetSource | None) -> bool:
    """Return whether a target comes from the settings; `False` if a fixture of the user provides the target."""
    return source is None or isinstance(source, str) or inspect.unwrap(source.func).__module__ == OWN_MODULE


def is_overridden(node: pytest.Item | pytest.Collector) -> bool:
    """Return whether a conftest overrides the fixture `fairness_target` for a node."""
    return not is_from_settings(_definition(node))


def may_be_overridden(config: pytest.Config) -> bool:
    """Return whether a conftest file or plugin that is loaded before the collection defines `fairness_target`."""
    plugins = config.pluginmanager.get_plugins()
    return any(hasattr(plugin, TARGET_FIXTURE) for plugin in plugins if plugin is not sys.modules[OWN_MODULE])


def uses_default_target(item: pytest.Item, settings: RunSettings) -> bool:
    """Return whether an item uses the default target because no target is named."""
    source = target_source(item) if settings.target_is_default else None
    return source is not None and not isinstance(source, str) and is_from_settings(source)


def active_target(request: pytest.FixtureRequest) -> tuple[FixtureDef[Any], object]:
    """Return the definition of the fixture `fairness_target` that applies to a test, and the fixture's value."""
    value: object = request.getfixturevalue(TARGET_FIXTURE)
    return request._get_active_fixturedef(TARGET_FIXTURE), value


def analyses_of(items: Iterable[pytest.Item], *, last_only: bool) -> Iterator[ProbeItem]:
    """Yield the first interim analysis of each probe item that is not skipped and whose models are available.

    If `last_only` is set, yield the final analysis of each item.
    """
    for item in items:
        probe_item = probe_item_of(item)
        if probe_item is not None and not is_skipped(item) and probe_item.models.available:
            yield probe_item.analyses[-1 if last_only else 0]


def fixture_name(definition: FixtureDef[Any], root: Path) -> str:
    """Return the name of a target that a fixture provides: `tests/conftest.py::fairness_target`."""
    code = getattr(inspect.unwrap(definition.func), "__code__", None)
    return f"{shown_path(Path(code.co_filename), root) if code else 'a plugin'}::{definition.argname}"


def shown_path(path: Path, root: Path) -> str:
    """Return a path for messages; paths inside pytest's rootdir are relative to the rootdir."""
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _definition(node: pytest.Item | pytest.Collector) -> FixtureDef[Any] | None:
    # The items of a probe file have the same fixtures, which are searched once.
    stash = node.parent.stash if PROBE_ITEM in node.stash and node.parent is not None else node.stash
    if _DEFINITION not in stash:
        definitions = node.session._fixturemanager.getfixturedefs(TARGET_FIXTURE, node)
        stash[_DEFINITION] = definitions[-1] if definitions else None
    return stash[_DEFINITION]
