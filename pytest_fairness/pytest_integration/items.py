"""Test items: the collector of a probe file, its items, and the verdicts on items and on checks of Python tests."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

# A private class, as in pytest's own doctest items: no public class gives fixtures to items that are not functions.
from _pytest.fixtures import FuncFixtureInfo, TopRequest
from pydantic import ValidationError

from pytest_fairness import kinds, probes
from pytest_fairness.errors import BaselineError, FairnessError, NotMeasurable, ProbeError
from pytest_fairness.probes import Probe
from pytest_fairness.probes.diagnostics import nearest, quoted, suggestion
from pytest_fairness.probes.field_types import AuditSettings, ExpectedFailure, name_key
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.pytest_integration.configuration import accept_command, export_command, registered_marks
from pytest_fairness.pytest_integration.item_results import (
    Biased,
    Unfair,
    attach,
    without_traceback,
)
from pytest_fairness.pytest_integration.planning import (
    PROBE_ITEM,
    AuditSession,
    is_overridden,
    may_be_overridden,
    shown_path,
    unrepeated_id,
    uses_default_target,
)
from pytest_fairness.records import ItemResult, Json, VerdictName, current_id
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.terminal import failure_text
from pytest_fairness.reports.view import ItemView
from pytest_fairness.run import (
    BaselineComparison,
    ItemMeasurement,
    ProbeItem,
    Run,
    error_result,
    items_of,
    measured_only,
    result_of,
)
from pytest_fairness.run.results import row_from

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr, TracebackStyle


# Collector of a probe file, and its test items.

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

    def __init__(self, *, fairness: AuditSession, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._fairness = fairness

    def collect(self) -> Iterator[FairnessItem]:
        """Load the probe and yield its items; all errors of the file are one collection error."""
        try:
            probe_items = self._probe_items()
        except FairnessError:
            self._fairness.faulty = True
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
                fairness=self._fairness,
            )

    def _probe_items(self) -> list[ProbeItem]:
        run, root = self._fairness.run, self.config.rootpath
        probe = run.load(self.path)
        run.targets.require_judge(probe)
        name, other = self._fairness.probe_paths.setdefault(name_key(probe.name), (probe.name, self.path))
        if other != self.path:
            same = (
                f"has the name {name!r}, too"
                if name == probe.name
                else f"has the name {name!r}, which differs from {probe.name!r} only in letter case"
            )
            raise ProbeError(
                f"{shown_path(self.path, root)}: {shown_path(other, root)} {same}. "
                "Give one of the two probes another `name:`, because baselines are stored by name."
            )
        return _items(self._fairness, probe, named=not is_overridden(self))

    def _fixtures(self, needs_target: bool) -> FuncFixtureInfo:
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
        fairness: AuditSession,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._probe_item = self.stash[PROBE_ITEM] = probe_item
        self.siblings = siblings
        self._fairness = fairness
        self._measured: tuple[ItemMeasurement, BaselineComparison] | None = None
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
        """Send the requests and measure the answers; pytest counts an exception here as an error, not as a failure.

        With `--fairness-measure`, no baseline is read.

        Raises:
            NotMeasurable: there are too few usable answers.
        """
        self._request._fillfixtures()
        if self.config.getoption("setuponly", False):
            return
        session, probe_item, run = self._fairness, self._probe_item, self._fairness.run
        if run.settings.shard is not None or run.settings.batch_submit:
            self._only_send()
        try:
            probe_item.models.require()
            target = session.target_of(self)
            if target is not None:
                session.plan_requests(self, target)
            with nullcontext() if target is None else session.waiting_for(target):
                if session.measure_only:
                    self._measured = run.measure(probe_item, target), BaselineComparison()
                else:
                    self._measured = run.measure_and_compare(probe_item, target, rebaseline=session.rebaseline)
        except NotMeasurable as error:
            if not error.unusable:
                raise
            command = export_command(self.config, run.settings, self.path)
            raise NotMeasurable(f"{error} To read the answers: {command}") from error
        except BaselineError as error:
            if not error.fixed_by_rebaseline:
                raise
            command = _accept(session, self, self.nodeid.partition("::")[0])
            raise BaselineError(f"{error} Command: {command}") from error

    def _only_send(self) -> NoReturn:
        session, target = self._fairness, self._fairness.target_of(self)
        shard, reason = session.run.settings.shard, "no verdict: this run only submits requests in batches"
        if shard is not None:
            reason = f"no verdict: this run only sends the requests of shard {shard}"
            if target is not None:
                session.plan_requests(self, target)
                with session.waiting_for(target):
                    session.run.ask_shard(target, self._probe_item)
        raise pytest.skip.Exception(reason, _use_item_location=True)

    def runtest(self) -> None:
        """Judge the measurement; raise `Unfair` if the verdict fails the test.

        The error is raised here, and not where the item is measured, so that the error's traceback keeps no answers in
        memory.
        """
        session = self._fairness
        if self._measured is None:
            return
        result = attach_verdict(session, self, *self._measured, siblings=self.siblings, **self.identity())
        if (failure := _failure(session, result)) is not None:
            raise failure

    def identity(self) -> dict[str, Json]:
        """Return the identity of the item's target, for its record; nothing without a target."""
        target = self._fairness.target_of(self)
        return {} if target is None else {"identity": target.identity}

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
        if mark in UNUSABLE_MARKS:
            return UNUSABLE_MARKS[mark]
        allowed = registered_marks(self.config)
        if mark in allowed:
            return None
        known = ", ".join(dict.fromkeys(allowed)) or "none"
        return f"the ini file does not register it (`markers`). Valid marks: {known}."


def _needs_target(fairness_target: object) -> None:
    """Signature from which pytest learns that items with requests need the fixture `fairness_target`; never called."""


# Probe files of a run and their probe items.

PROBE_SUFFIXES = frozenset({".yaml", ".yml"})
SHOWN_IDS = 10
"""Maximum number of item ids in a message."""


def require_ids(session: AuditSession) -> None:
    """Raise `pytest.UsageError` if the command line names an item that its probe file does not have.

    pytest itself would say only that the item is not found, and nothing at all under pytest-xdist. An expression of the
    option `-k` with the former end of an id, which pytest cannot parse, is an error, too.
    """
    expression = session.config.getoption("keyword")
    for name in session.run.settings.targets:
        if f"@{name}" in expression:
            raise pytest.UsageError(
                f"-k {expression!r}: the ids of items no longer end in @{name}; the brackets hold target={name}. "
                f'Select the target with `-k {name}` or `-m "fairness(target={name!r})"`.'
            )
    for argument in session.config.args:
        file, colons, name = argument.partition("::")
        path = (session.config.invocation_params.dir / file).resolve()
        if not colons or path.suffix.lower() not in PROBE_SUFFIXES:
            continue
        try:
            probe = session.run.load(path)
            overridden = may_be_overridden(session.config)
            items = _all_items(session, probe) if overridden else _items(session, probe, named=True)
        except FairnessError:
            continue  # the collection reports the error
        ids = [item.id for item in items]
        # pytest takes the name of an audit for all of its items.
        if name not in {known for item in ids for known in (item, item.partition("[")[0])}:
            judged = next(
                (f": the item {item.id} measures its number" for item in items if name in item.stands_for), ""
            )
            if (current := current_id(name)) != name and current in ids:
                judged = f": the name of the target is inside the brackets now. Write {current!r}."
            raise pytest.UsageError(f"{file} has no item {name!r}{judged or _unknown_item_hint(name, ids)}")


def items_of_id(session: AuditSession, path: Path, name: str) -> list[ProbeItem]:
    """Return the items of a probe file that have this id, which may hold a target's name."""
    return [item for item in _all_items(session, session.run.load(path)) if item.id == name]


def _all_items(session: AuditSession, probe: Probe) -> list[ProbeItem]:
    unnamed = _items(session, probe, named=False) if session.run.settings.targets else ()
    return [*_items(session, probe, named=True), *unnamed]


def _items(session: AuditSession, probe: Probe, *, named: bool) -> list[ProbeItem]:
    items, targets = items_of(probe, session.run.settings.trials), session.run.settings.targets
    _require_groups(probe, items, session.config.rootpath)
    if targets and named and probe.responses is None:
        # The targets alternate from item to item, so that all targets are busy from the start.
        items = [replace(item, target=name) for item in items for name in targets]
    if session.run.nights.used and not (session.rebaseline or session.measure_only):
        items = [item.in_part(*session.run.nights.part_of(item.baseline_name)) for item in items]
    return items


def _require_groups(probe: Probe, items: Sequence[ProbeItem], root: Path) -> None:
    errors = []
    for audit, settings in probe.audits.items():
        if isinstance(settings.xfail, ExpectedFailure):
            subjects = [
                item.subject
                for item in items
                if item.subject is not None
                and (item.audit_name == audit or f"{audit}[{item.subject}]" in item.stands_for)
            ]
            where = f"{shown_path(probe.source.path, root)}:{probe.source.line_of(audit)}"
            errors += [
                f"{where}: audits.{audit}.xfail: unknown group {quoted(group)}{suggestion(group, subjects)}"
                for group in settings.xfail.groups or ()
                if group not in subjects
            ]
    if errors:
        raise ProbeError("\n".join(errors))


def _unknown_item_hint(name: str, ids: Sequence[str]) -> str:
    near = nearest(name, ids)
    audit = name.partition("[")[0]
    listed = [item for item in ids if item.partition("[")[0] == audit] or ids
    more = f" and {len(listed) - SHOWN_IDS:,} more" if len(listed) > SHOWN_IDS else ""
    whose = f"The items of {audit}" if len(listed) < len(ids) else "Its items"
    meant = "" if near is None else f": did you mean {near!r}?"
    return f"{meant or '.'} {whose} are {', '.join(listed[:SHOWN_IDS])}{more}."


# Verdicts on probe items and on measurements of Python tests.

FAILURES = pytest.StashKey[list[Unfair]]()
"""Key of the failed checks in the stash of a Python test."""


def attach_verdict(
    session: AuditSession,
    item: pytest.Item,
    measured: ItemMeasurement,
    compared: BaselineComparison,
    **further: Json,
) -> ItemResult:
    """Return the result of an item, and attach it to the item; `further` is added to its record."""
    item.ihook.pytest_fairness_measured(item=item, measurement=measured.measurement)
    nodeid, run = unrepeated_id(item), session.run
    # A new baseline needs all trials. If an interim analysis gave the verdict, further trials were not requested.
    complete, needs_replay = measured.item.final_analysis, run.engines.reuse_needs_replay
    if session.measure_only:
        result = measured_only(measured, nodeid)
    else:
        accept = _accept(session, item, nodeid, replay=complete and needs_replay)
        result = result_of(measured, compared, nodeid, accept)
    more: dict[str, Json] = {**further, "complete": complete, "needs_replay": needs_replay}
    if session.rebaseline and compared.entry is not None and measured.measurement.judgeable:
        rows = (row_from(answer, measured.item.probe) for answer in measured.answers)
        plain = ([dict(row.labels), row.trial, row.text, row.judged, row.refused] for row in rows)
        more |= {"entry": compared.entry.to_json(), "answers": run.store.cache.put_answers(plain)}
    if compared.line is not None:
        more["night"] = asdict(compared.line)
    attach(item, result.to_plain(), measured.item, measured.target, **more)
    return result


def attach_error(item: FairnessItem, error: BaseException) -> None:
    probe_item = item.stash[PROBE_ITEM]
    recorded = probe_item.probe.responses
    file = None if recorded is None else recorded.file.name
    more: dict[str, Json] = {"siblings": item.siblings}
    with suppress(FairnessError, KeyError):  # the error may be that of the target
        more |= item.identity()
    attach(item, error_result(probe_item, error, item.nodeid).to_plain(), probe_item, file, **more)


def check(session: AuditSession, item: pytest.Item, measured: ItemMeasurement) -> ItemResult:
    """Return the result of a measurement in a Python test; a failing verdict fails the test when the test ends."""
    name, baselines = measured.item.probe.name, session.run.baselines
    if name_key(name) in session.probe_paths:
        path = shown_path(session.probe_paths[name_key(name)][1], session.config.rootpath)
        raise FairnessError(
            f"fairness_check: {name!r} is the name of the probe {path}. Choose another name for the check."
        )
    compared = BaselineComparison()
    if not session.measure_only:
        compared = baselines.new_baseline(measured) if session.rebaseline else baselines.compare(measured)
    result = attach_verdict(session, item, measured, compared)
    if (failure := _failure(session, result)) is not None:
        item.stash.setdefault(FAILURES, []).append(failure)
    return result


def raise_failures(item: pytest.Item) -> None:
    """Raise `Unfair` with the texts of all failed checks of a Python test, if there are any.

    A failed check does not end its test immediately, because a review of baselines needs the verdicts of all checks.
    """
    failures = item.stash.get(FAILURES, [])
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        raise Unfair(
            f"{failures[0].finding}{more}",
            "\n".join(failure.msg or "" for failure in failures),
            without_baseline=all(failure.without_baseline for failure in failures),
        )


def _failure(session: AuditSession, result: ItemResult) -> Unfair | None:
    failing = ["failed", "inconclusive"] if "inconclusive" in session.run.settings.fail_on else ["failed"]
    if result.verdict.name.outcome not in failing:
        return None
    view = ItemView(result.to_json(), result.method)
    compared = result.verdict.name not in (VerdictName.NO_BASELINE, VerdictName.STALE_BASELINE)
    return (Biased if compared else Unfair)(
        printable(view.headline),
        failure_text(view),
        without_baseline=result.verdict.name is VerdictName.NO_BASELINE,
    )


def _accept(session: AuditSession, item: pytest.Item, nodeid: str, *, replay: bool = False) -> str:
    settings = session.run.settings
    default = uses_default_target(item, settings)
    return accept_command(session.config, settings, nodeid, uses_default_target=default, replay=replay)


# Probes and settings of audits, made from arguments that Python tests pass to fixtures.

KIND = "generation"
"""Kind of the probe that generates a corpus."""


def audit_settings(model: type[AuditSettings], given: Mapping[str, Any], where: str) -> AuditSettings:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        details = (f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors())
        raise FairnessError(f"{where}: {'; '.join(details)}.") from None


def generation_probe(
    written: Mapping[str, Any], where: str, run: Run, scorers: Mapping[str, str] | None = None
) -> GenerationProbe:
    """Return a probe of the kind `generation` with this content, which is checked like a probe file."""
    try:
        content = json.dumps({"kind": KIND, "name": "corpus", **written}, ensure_ascii=False)
    except TypeError as error:
        raise ProbeError(f"{where}: an argument has a value that a probe file cannot hold: {error}") from None
    known = run.scorers if scorers is None else scorers
    try:
        parsed = probes.parse(content.encode(), Path("corpus"), kinds.schemas(), root=run.settings.root, scorers=known)
    except ProbeError as error:
        # The positions are left out, because they refer to generated JSON.
        messages = re.sub(r"^corpus:\d+:\d+: ", "", str(error), flags=re.MULTILINE).splitlines()
        raise ProbeError(f"{where}: {'; '.join(messages)}") from None
    return cast("GenerationProbe", parsed)
