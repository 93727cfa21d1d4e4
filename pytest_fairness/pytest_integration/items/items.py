"""Collector of a probe file, and its test items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# A private class, as in pytest's own doctest items: no public class gives fixtures to items that are not functions.
from _pytest.fixtures import FuncFixtureInfo, TopRequest

from pytest_fairness.errors import FairnessError, ProbeError
from pytest_fairness.pytest_integration.ini import registered_marks
from pytest_fairness.pytest_integration.items.audit_service import AuditService
from pytest_fairness.pytest_integration.items.item_results import Biased, without_traceback
from pytest_fairness.pytest_integration.items.item_targets import PROBE_ITEM
from pytest_fairness.run import BaselineComparison, ItemMeasurement, ProbeItem
from pytest_fairness.run.earlier_results import EarlierResult

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr, TracebackStyle

_NO_REASON = (
    "the mark needs a reason. Write the reason in the settings of the audit: `skip: reason` or `xfail: reason`."
)
UNUSABLE_MARKS = {
    "parametrize": "the mark is only for functions.",
    **dict.fromkeys(("skip", "skipif", "xfail"), _NO_REASON),
    **dict.fromkeys(
        ("usefixtures", "filterwarnings", "timeout"), "the mark needs arguments, which a probe file cannot hold."
    ),
}
"""Marks that a probe cannot have, each with the reason."""


class ProbeFile(pytest.File):
    """Collector of one probe file; it yields an item for each group (or other unit) of each audit."""

    def __init__(self, *, service: AuditService, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._service = service

    def collect(self) -> Iterator[FairnessItem]:
        """Load the probe and yield its items; all errors of the file are one collection error."""
        try:
            probe_items = self._service.probe_files.collect(self.path, self)
        except FairnessError:
            self._service.probe_files.faulty = True
            raise
        siblings: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        for probe_item in probe_items:
            siblings[probe_item.baseline_name][probe_item.id] = probe_item.settings.skip is not None
        fixtures = cache(self._fixtures)
        for probe_item in probe_items:
            yield FairnessItem.from_parent(
                self,
                name=probe_item.id,
                # Given explicitly, because pytest from 9.2 on parses the default id and finds items by the result.
                nodeid=f"{self.nodeid}::{probe_item.id}",
                probe_item=probe_item,
                siblings=siblings[probe_item.baseline_name],
                fixtures=fixtures(probe_item.asks and probe_item.target is None),
                service=self._service,
            )

    def _fixtures(self, needs_target: bool) -> FuncFixtureInfo:
        """Return the fixtures of items; with `needs_target`, these include `fairness_target`."""
        function = _needs_target if needs_target else None
        return self.session._fixturemanager.getfixtureinfo(node=self, func=function, cls=None)  # type: ignore[arg-type] # items have no other fixtures than their file

    def repr_failure(  # type: ignore[override] # as pytest's own collectors
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> str | TerminalRepr:
        """Return the errors of the file, one per line, without a traceback.

        For an exception that is no error of this plugin, return pytest's representation.
        """
        return str(excinfo.value) if isinstance(excinfo.value, FairnessError) else super().repr_failure(excinfo)


class FairnessItem(pytest.Item):
    """Test item of a probe. Its set-up sends requests and measures the answers; its call judges the measurement.

    Attributes:
        siblings: for each item with the same baseline, by its id, whether the item is skipped; items that are not
            selected are included.
    """

    def __init__(
        self,
        *,
        probe_item: ProbeItem,
        siblings: dict[str, bool],
        fixtures: FuncFixtureInfo,
        service: AuditService,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._probe_item = self.stash[PROBE_ITEM] = probe_item
        self.siblings = siblings
        self._service = service
        self._measured: tuple[ItemMeasurement, BaselineComparison] | EarlierResult | None = None
        self.extra_keyword_matches.update(probe_item.stands_for)
        self._mark()
        # `TopRequest` reads these attributes of its item.
        self.obj = None
        self._fixtureinfo = fixtures
        self.fixturenames = self._fixtureinfo.names_closure
        self._initrequest()

    def _initrequest(self) -> None:
        """Reset the fixtures; plugins that rerun items call this method."""
        self._request = TopRequest(self, _ispytest=True)  # type: ignore[arg-type] # as pytest's doctest items do
        # The value of the fixture `request`; pytest would define this fixture for each item, which takes longer.
        self.funcargs: dict[str, object] = {"request": self._request}

    def setup(self) -> None:
        """Send the requests and measure the answers; pytest counts an exception here as an error, not as a failure."""
        self._request._fillfixtures()
        if self.config.getoption("setuponly", False):
            return
        settings = self._service.run.settings
        if settings.shard is None and not settings.batch_submit:
            self._measured = self._service.measure(self, self._probe_item)
            return
        reason = f"no verdict: this run only sends the requests of shard {settings.shard}"
        if settings.batch_submit:
            self._service.planner.target_of_probe_item(self)
            reason = "no verdict: this run only submits requests in batches"
        else:
            self._service.ask_shard(self, self._probe_item)
        raise pytest.skip.Exception(reason, _use_item_location=True)

    def runtest(self) -> None:
        """Judge the measurement; raise `Unfair` if the verdict fails the test."""
        if isinstance(self._measured, EarlierResult):
            self._service.raise_on_failure(self._service.attach_earlier(self, self._measured, self.siblings))
        elif self._measured is not None:
            self._service.raise_on_failure(self._service.decide(self, *self._measured, siblings=self.siblings))

    def teardown(self) -> None:
        """Free the answers, of which there may be millions."""
        self._measured = None

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the probe file, the line of the item's audit (from 0) and the item's name."""
        return self.path, self._probe_item.probe.source.line_of(self._probe_item.audit_name) - 1, self.name

    def _repr_failure_py(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: TracebackStyle | None = None
    ) -> TerminalRepr:
        """Return an error, such as an exceeded time limit, without a traceback, because a probe has no Python code.

        For any other exception, return pytest's representation.

        Formatting a traceback would take pytest a tenth of a second. pytest's public method `repr_failure` is not
        called for an error of the set-up.
        """
        if isinstance(excinfo.value, FairnessError | pytest.fail.Exception) and not self.config.getoption(
            "fulltrace", False
        ):
            return without_traceback(excinfo, self)
        return super()._repr_failure_py(excinfo, style)

    def _mark(self) -> None:
        target, settings = self._probe_item.target, self._probe_item.settings
        self.add_marker(pytest.mark.fairness(target=target) if target else "fairness")
        for name in self._probe_item.probe.marks:
            where = f"{self.parent.nodeid if self.parent else self.path}: `marks:` cannot hold {name!r}"
            if reason := self._objection_to_mark(name):
                raise ProbeError(f"{where}: {reason}")
            try:
                self.add_marker(getattr(pytest.mark, name))
            except (pytest.fail.Exception, pytest.PytestUnknownMarkWarning, AttributeError) as error:
                raise ProbeError(f"{where}: {error}") from error
        if settings.skip:
            self.add_marker(pytest.mark.skip(reason=settings.skip))
        if (mark := settings.expected_failure(self._probe_item.subject)) is not None:
            strict = {} if mark.strict is None else {"strict": mark.strict}
            self.add_marker(pytest.mark.xfail(reason=mark.reason, raises=Biased, **strict))

    def _objection_to_mark(self, mark: str) -> str | None:
        """Return the reason why a probe may not have this mark; `None` if the mark is allowed."""
        if mark in UNUSABLE_MARKS:
            return UNUSABLE_MARKS[mark]
        allowed = [*registered_marks(self.config), *self._service.run.settings.marks]
        if mark in allowed:
            return None
        known = ", ".join(dict.fromkeys(allowed)) or "none"
        return f"the ini file neither registers it (`markers`) nor allows it (`fairness_marks`). Valid marks: {known}."


def _needs_target(fairness_target: object) -> None:
    """Signature from which pytest learns that items with requests need the fixture `fairness_target`; never called."""
