"""Probe files become pytest items: the one room that knows pytest's private fixture API."""

from __future__ import annotations

import dataclasses
import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# The way of pytest's own doctest items: there is no public one for an item that uses fixtures.
from _pytest._code.code import ReprExceptionInfo, ReprFileLocation
from _pytest.fixtures import FixtureDef, TopRequest
from _pytest.junitxml import xml_key
from _pytest.outcomes import Failed

from pytest_fairness.errors import FairnessError, ProbeError
from pytest_fairness.options import RunSettings
from pytest_fairness.pytest_integration.ini import registered_marks
from pytest_fairness.run import BaselineComparison, ItemMeasurement, ProbeItem

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

    from pytest_fairness.pytest_integration.session import FairnessSession

TARGET_FIXTURE = "fairness_target"
OURS = "pytest_fairness.plugin"
"""Where our own fixture of this name is."""
ASKING = frozenset({"llm_client", "corpus_generator", TARGET_FIXTURE})
"""Fixtures by which Python tests ask."""
_NO_REASON = (
    "it takes a reason; give one in the settings of each audit that is meant, `skip: reason` or `xfail: reason`"
)
CHECK_FIXTURE = "fairness_check"
UNUSABLE_MARKS = {
    "parametrize": "it marks functions only",
    **dict.fromkeys(("skip", "skipif", "xfail"), _NO_REASON),
    **dict.fromkeys(("usefixtures", "filterwarnings", "timeout"), "it needs arguments, and a probe gives none"),
}
"""Marks that a probe cannot have, and why."""


class ProbeFile(pytest.File):
    """One probe file; every audit in it becomes an item."""

    def __init__(self, *, fairness: FairnessSession, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._fairness = fairness

    def collect(self) -> Iterator[FairnessItem]:
        """Load the probe; all its faults are one collection error."""
        try:
            probe_items = self._fairness.probe_items(self.path, self)
        except FairnessError:
            self._fairness.faulty = True
            raise
        siblings: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        for probe_item in probe_items:
            siblings[probe_item.baseline_name][probe_item.id] = probe_item.settings.skip is not None
        for probe_item in probe_items:
            yield FairnessItem.from_parent(
                self,
                name=probe_item.id,
                # Spelt out, as pytest from 9.2 on finds items again by a node id that it has parsed.
                nodeid=f"{self.nodeid}::{probe_item.id}",
                probe_item=probe_item,
                siblings=siblings[probe_item.baseline_name],
                fairness=self._fairness,
            )

    def repr_failure(  # type: ignore[override] # as pytest's own collectors
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> str | TerminalRepr:
        """The faults alone, one a line."""
        return str(excinfo.value) if isinstance(excinfo.value, FairnessError) else super().repr_failure(excinfo)


class FairnessItem(pytest.Item):
    """One audit item: its set-up asks and measures, its call gives the verdict.

    Attributes:
        probe_item: what is measured.
        siblings: ids of all items of its baseline, selected or not, and whether the probe skips them.
    """

    def __init__(
        self, *, probe_item: ProbeItem, siblings: dict[str, bool], fairness: FairnessSession, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.probe_item = probe_item
        self.siblings = siblings
        self._fairness = fairness
        self._measured: tuple[ItemMeasurement, BaselineComparison] | None = None
        self._mark()
        # What a `TopRequest` reads off its item.
        self.obj = None
        needs = _asks if probe_item.asks and probe_item.target is None else None
        self._fixtureinfo = self.session._fixturemanager.getfixtureinfo(node=self, func=needs, cls=None)
        self.fixturenames = self._fixtureinfo.names_closure
        self._initrequest()

    def _initrequest(self) -> None:
        """Begin anew; plugins that run an item several times call this too."""
        self.funcargs: dict[str, object] = {}
        self._request = TopRequest(self, _ispytest=True)  # type: ignore[arg-type] # as pytest's doctest items do

    @property
    def asked(self) -> FixtureDef[Any] | str | None:
        """Whom it asks: the target of a name, or what a fixture says; items that share it are planned together."""
        return self.probe_item.target or self.target_fixture

    @property
    def target_fixture(self) -> FixtureDef[Any] | None:
        """The definition of `fairness_target` that holds for this item."""
        definitions = self._fixtureinfo.name2fixturedefs.get(TARGET_FIXTURE)
        return definitions[-1] if definitions else None

    def setup(self) -> None:
        """Ask and measure; what fails here is an error, not a verdict."""
        self._request._fillfixtures()
        if not self.config.getoption("setuponly", False):
            self._measured = self._fairness.measure(self)

    def runtest(self) -> None:
        """The verdict."""
        if self._measured is not None:
            self._fairness.raise_on_failure(self._fairness.judge(self, *self._measured, siblings=self.siblings))

    def teardown(self) -> None:
        """Let go of the answers, of which there may be very many."""
        self._measured = None

    def reportinfo(self) -> tuple[Path, int, str]:
        """The probe file, from its first line."""
        return self.path, 0, self.name

    def _mark(self) -> None:
        self.add_marker(pytest.mark.fairness(target=self.probe_item.target) if self.probe_item.target else "fairness")
        for name in self.probe_item.probe.marks:
            where = f"{self.parent.nodeid if self.parent else self.path}: `marks:` cannot hold {name!r}"
            if reason := self._why_not(name):
                raise ProbeError(f"{where}: {reason}")
            try:
                self.add_marker(getattr(pytest.mark, name))
            except (pytest.fail.Exception, pytest.PytestUnknownMarkWarning, AttributeError) as error:
                raise ProbeError(f"{where}: {error}") from error
        settings = self.probe_item.settings
        if settings.skip:
            self.add_marker(pytest.mark.skip(reason=settings.skip))
        if settings.xfail:
            self.add_marker(pytest.mark.xfail(reason=settings.xfail))

    def _why_not(self, mark: str) -> str | None:
        """Return why a probe may not have this mark: others than those that the project allows may do anything."""
        if mark in UNUSABLE_MARKS:
            return UNUSABLE_MARKS[mark]
        allowed = [*registered_marks(self.config), *self._fairness.run.settings.marks]
        if mark in allowed:
            return None
        known = f"these are {', '.join(dict.fromkeys(allowed))}" if allowed else "there are none"
        return f"a probe has only marks that the ini registers (`markers`) or allows (`fairness_marks`), and {known}"


def looks_of(items: Iterable[pytest.Item], *, rebaseline: bool) -> Iterator[ProbeItem]:
    """Yield what each audit item that is going to run is first measured from; everything it may ask at a rebaseline."""
    for item in items:
        if isinstance(item, FairnessItem) and item.get_closest_marker("skip") is None and item.probe_item.measurable:
            yield item.probe_item.looks[-1 if rebaseline else 0]


def _asks(fairness_target: object) -> None:
    """Its argument is what an item that asks a model needs of pytest."""


def active_target(request: pytest.FixtureRequest) -> tuple[FixtureDef[Any], object]:
    """The definition of `fairness_target` that holds where a test stands, and its value."""
    value: object = request.getfixturevalue(TARGET_FIXTURE)
    return request._get_active_fixturedef(TARGET_FIXTURE), value


def is_ours(definition: FixtureDef[Any] | None) -> bool:
    """Whether nobody overrides whom the settings name."""
    return definition is None or inspect.unwrap(definition.func).__module__ == OURS


def is_overridden(node: pytest.Item | pytest.Collector) -> bool:
    """Whether a conftest says who is asked where a node stands."""
    definitions = node.session._fixturemanager.getfixturedefs(TARGET_FIXTURE, node)
    return not is_ours(definitions[-1] if definitions else None)


def is_audit(item: pytest.Item) -> bool:
    """Return whether an item is an audit: an item of a probe, or a Python test that is marked or takes our fixtures."""
    ours = ASKING | {CHECK_FIXTURE}
    return (
        isinstance(item, FairnessItem)
        or item.get_closest_marker("fairness") is not None
        or not ours.isdisjoint(getattr(item, "fixturenames", ()))
    )


def asked_by(item: pytest.Item) -> FixtureDef[Any] | str | None:
    """Return whom an item asks: the target of a name, or what a fixture says; `None` where it asks nobody."""
    if isinstance(item, FairnessItem):
        return item.asked
    if ASKING.isdisjoint(getattr(item, "fixturenames", ())):
        return None
    definitions = item.session._fixturemanager.getfixturedefs(TARGET_FIXTURE, item)
    return name_asked(item) or (definitions[-1] if definitions else None)


def asks_default(item: pytest.Item, settings: RunSettings) -> bool:
    """Return whether an item asks the default target because no target was named."""
    asked = asked_by(item) if settings.target_is_default else None
    return asked is not None and not isinstance(asked, str) and is_ours(asked)


def name_of(definition: FixtureDef[Any], root: Path) -> str:
    """Return what a fixture that says who is asked is called: `tests/conftest.py::fairness_target`."""
    code = getattr(inspect.unwrap(definition.func), "__code__", None)
    return f"{relative(Path(code.co_filename), root) if code else 'a plugin'}::{definition.argname}"


def relative(path: Path, root: Path) -> str:
    """A path as it is shown: from pytest's root where it is below."""
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def name_asked(item: pytest.Item) -> str | None:
    """The name of the one of several targets that an item or a Python test asks."""
    if isinstance(item, FairnessItem):
        return item.probe_item.target
    callspec = getattr(item, "callspec", None)
    name = callspec.params.get(TARGET_FIXTURE) if callspec else None
    return name if isinstance(name, str) and not is_overridden(item) else None


def show_names_as_they_are(config: pytest.Config) -> None:
    """Have pytest's summary show ids that do not end in a bracket as they are.

    pytest from 9.2 on puts what it shows together from the parts of an id that it has parsed, and takes whatever stands
    after the first bracket for parameters, which it closes with another bracket.
    """
    shown = config.cwd_relative_nodeid

    def as_it_is(nodeid: Any) -> Any:
        relative = shown(nodeid)
        if getattr(relative, "params", None) is None or str(nodeid).endswith("]"):
            return relative
        *names, last = relative.names
        return dataclasses.replace(relative, names=(*names, f"{last}[{relative.params}"), params=None)

    config.cwd_relative_nodeid = as_it_is  # type: ignore[method-assign] # there is no hook for it


def name_in_junit(config: pytest.Config, report: pytest.TestReport) -> None:
    """The same for the names of test cases in JUnit files."""
    xml = config.stash.get(xml_key, None)
    if xml is not None and not report.nodeid.endswith("]"):
        names, bracket, values = report.nodeid.partition("[")
        xml.node_reporter(report).add_attribute("name", names.rpartition("::")[2] + bracket + values)


class Unfair(Failed):
    """A verdict that fails a test; shown without a traceback.

    Args:
        reason: one line.
        text: the reason and what drove it, for the section of failures.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text, pytrace=False)
        self.reason = reason


def shown_alone(excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item) -> TerminalRepr:
    """An error or failure of ours as its message, without a traceback, which would show our own code."""
    error = excinfo.value
    reason = error.reason if isinstance(error, Unfair) else " ".join(str(error).split())
    path, line, _ = item.location
    return ReprExceptionInfo(
        reprtraceback=excinfo.getrepr(style="value", chain=False).reprtraceback,
        reprcrash=ReprFileLocation(path, (line or 0) + 1, reason),
    )
