"""Bundles: all that the verdicts of a run rest on in one file, and its check, which measures everything again."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, cast

from pytest_fairness.answers import reading
from pytest_fairness.asking.store import response_key
from pytest_fairness.audits import answer_checks, registry
from pytest_fairness.baselines.files import paths, read_baseline
from pytest_fairness.errors import (
    AnswersMissing,
    FairnessError,
    ModelError,
    NotMeasurable,
    RequestFailed,
    one_line,
)
from pytest_fairness.options import RunSettings
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import (
    ItemResult,
    Json,
    Request,
    Response,
    Verdict,
    VerdictName,
    current_id,
    target_name,
    without_target,
)
from pytest_fairness.reports import files
from pytest_fairness.reports.document import report_document
from pytest_fairness.run.archive import (
    MOST_BYTES,
    Archive,
    BundleError,
    json_bytes,
    parsed,
    parsed_lines,
    unpack,
    write_archive,
)
from pytest_fairness.run.engines import Engines, Targets
from pytest_fairness.run.items import ProbeItem, items_of
from pytest_fairness.run.results import error_result, measured_only, result_of
from pytest_fairness.run.run import Run
from pytest_fairness.scorers import BUILT_IN
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.secrets import environment_redactor
from pytest_fairness.version import __version__

# Replay of a run from recorded answers only.

Mode = Literal["verdicts", "baselines", "measurements"]
"""What a run made of its measurements: verdicts, new baselines (`--fairness-rebaseline`) or nothing more
(`--fairness-measure`)."""


class RecordedTarget(NamedTuple):
    """Target of which only the name and the identity are known; its answers are recorded."""

    name: str
    identity: str
    reusable: bool = True
    likelihoods: bool = True
    concurrency: int | None = None


class RecordedEngines(Engines):
    """Engines that give recorded answers only, and keep which ones were given.

    Attributes:
        known: the answers, or the messages of failed requests, by key; `None` to take them from the run's store.
        given: those that were given so far.
    """

    known: Mapping[str, Response | str] | None = None

    @cached_property
    def given(self) -> dict[str, Response | str]:
        return {}

    def plan(self, target: Target, requests: Iterable[Request]) -> None:
        """Send nothing."""

    def ask(self, target: Target, requests: Sequence[Request]) -> list[Response | FairnessError]:
        keys = [response_key(target.identity, request) for request in requests]
        known = self._recorded(target, keys) if self.known is None else self.known
        self.given.update({key: known[key] for key in keys if key in known})
        return [_settled(known.get(key), request) for key, request in zip(keys, requests, strict=True)]

    def _recorded(self, target: Target, keys: Sequence[str]) -> dict[str, Response | str]:
        fresh = self.freshness(target)
        found: dict[str, Response | str] = {**self.store.get(keys, fresh)}
        if len(found) < len({*keys}):
            newest, _ = self.store.position()
            failed = self.store.changes((newest, 0), target.identity, fresh).failed
            found |= {key: message for key, message in failed.items() if key not in found}
        return found


def _settled(found: Response | str | None, request: Request) -> Response | FairnessError:
    if isinstance(found, str):
        return RequestFailed(found)
    prompt = one_line(request.prompt, 60)
    return AnswersMissing(f"the answer to {prompt!r} is missing") if found is None else found


class RecordedTargets(Targets):
    """Judge and embedding models of which only the names and identities are known."""

    recorded_judge: Target | None = None
    recorded_embedders: Mapping[str, Target] = {}

    @cached_property
    def judge(self) -> Target | None:
        return self.recorded_judge

    def embedder(self, item: ProbeItem) -> Target | None:
        name = item.models.embedder
        if name is not None and name not in self.recorded_embedders:
            raise ModelError(f"the answers of the embedding model {name} are missing")
        return None if name is None else self.recorded_embedders[name]


class RecordedItem(NamedTuple):
    """Item of a run: its id in pytest, its id in reports, and the target of its answers, if it was asked."""

    nodeid: str
    id: str
    target: RecordedTarget | None


class RunItems:
    """Items of the probe files under a folder, by their ids in reports."""

    def __init__(self, run: Run, root: Path, trials: int | None) -> None:
        self._run, self._root, self._trials = run, root, trials
        self._known: dict[str, tuple[Probe, dict[str, ProbeItem]]] = {}

    def find(self, nodeid: str, name: str, labels: Mapping[str, str]) -> ProbeItem:
        """Return an item; `FairnessError` if its probe cannot be read, or has no such item."""
        file = nodeid.partition("::")[0]
        if file not in self._known:
            probe = self._run.load(Path(os.path.normpath(self._root / file)))
            self._known[file] = probe, {item.id: item for item in items_of(probe, self._trials)}
        own = current_id(name)
        target = target_name(own, labels)
        found = self._known[file][1].get(own if target is None else without_target(own, target))
        if found is None:
            raise FairnessError(f"the probe {file} has no item {name}")
        return found if target is None else replace(found, target=target)


def _replayed(run: Run, item: ProbeItem, target: RecordedTarget | None, nodeid: str, mode: Mode) -> ItemResult:
    """Return the result of an item from recorded answers; texts that hold a command have `COMMAND` in its place."""
    asked = cast("Target | None", target)
    try:
        if mode == "measurements":
            return measured_only(run.measure(item, asked), nodeid)
        measured, compared = run.measure_and_compare(item, asked, rebaseline=mode == "baselines")
    except NotMeasurable as error:
        shown = NotMeasurable(f"{error} To read the answers: {COMMAND}") if error.unusable else error
        return error_result(item, shown, nodeid)
    return result_of(measured, compared, nodeid, COMMAND)


COMMAND = "\0command\0"


# Writer of bundles.

REPORT, RUN, ANSWERS, PROJECT = "report.json", "run.json", "answers.jsonl", "project"


def write_bundle(
    path: Path, report: Mapping[str, Json], items: Sequence[RecordedItem], run: Run, mode: Mode
) -> list[str]:
    """Write a bundle of a run whose answers are in its store; return why some items cannot be checked with it.

    Args:
        path: the file to write.
        report: the run's report document.
        items: the run's items.
        run: the run, after its end.
        mode: what the run made of its measurements.

    Raises:
        FairnessError: the file cannot be written, or a file that a probe names cannot be read.
    """
    settings, problems = run.settings, list[str]()
    by_id = {(item["nodeid"], item["id"]): item for item in report["items"]}
    judge: RecordedTarget | None = None
    embedders: dict[str, RecordedTarget] = {}
    named, audits = set[Path](), set[str]()
    with Run(settings, started=run.started, run=run.id, engines=RecordedEngines) as replay:
        known = RunItems(replay, settings.root, settings.trials)
        for nodeid, name, target in items:
            if is_python_test(nodeid):
                continue
            try:
                item = known.find(nodeid, name, by_id[nodeid, name]["labels"])
            except FairnessError as error:
                problems.append(f"{name}: {one_line(error)}")
                continue
            probe = item.probe
            audits.add(f"{probe.kind}.{item.audit_name}")
            named |= {probe.source.path, *probe.source.files, *_baseline_files(settings, item)}
            try:
                if probe.reading.judge_votes and replay.targets.judge is not None:
                    judge = RecordedTarget(replay.targets.judge.name, replay.targets.judge.identity)
                if item.models.embedder is not None and (model := replay.targets.embedder(item)) is not None:
                    embedders[item.models.embedder] = RecordedTarget(model.name, model.identity)
                if target is not None or not item.asks:
                    _replayed(replay, item, target, nodeid, mode)
            except FairnessError as error:
                problems.append(f"{name}: {one_line(error)}")
        given = cast("RecordedEngines", replay.engines).given
    base = Path(os.path.commonpath([settings.root, *named])) if named else settings.root
    described = {
        "mode": mode,
        "root": settings.root.relative_to(base).as_posix(),
        "baselines": Path(os.path.relpath(settings.baselines, base)).as_posix(),
        "started": run.started,
        "trials": settings.trials,
        "targets": {name: run.targets.named(name).name for name in settings.targets},
        "items": [[item.nodeid, item.id, item.target and list(item.target[:2])] for item in items],
        "judge": judge and list(judge[:2]),
        "embedders": {name: list(model[:2]) for name, model in sorted(embedders.items())},
        "scorers": dict(settings.scorers),
        "settings": _public_settings(settings),
        "audits": _versions_of_audits(audits),
        "versions": _versions(),
    }
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for file in sorted(named):
            if file.is_file():
                copy = folder / PROJECT / file.relative_to(base)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
        (folder / REPORT).write_bytes(json_bytes(report))
        redact = environment_redactor(settings=settings)
        (folder / RUN).write_bytes(redact(json_bytes(described).decode()).encode())
        with (folder / ANSWERS).open("w", encoding="utf-8", newline="\n") as lines:
            lines.writelines(line_of(key, given[key]) for key in sorted(given))
        predicate = {
            "tool": f"pytest-fairness {__version__}",
            "started": report["started"],
            "target": report["target"],
            "items": len(report["items"]),
        }
        write_archive(path, folder, predicate)
    return problems


def is_python_test(nodeid: str) -> bool:
    return nodeid.partition("::")[0].endswith(".py")


def _baseline_files(settings: RunSettings, item: ProbeItem) -> list[Path]:
    return [path for path in paths(settings.baselines, item.baseline_name) if path.is_file()]


def line_of(key: str, found: Response | str) -> str:
    if isinstance(found, str):
        plain: dict[str, Json] = {"key": key, "error": found}
    else:
        plain = {"key": key, **{name: value for name, value in asdict(found).items() if value is not None}}
    return json.dumps(plain, sort_keys=True) + "\n"


def _public_settings(settings: RunSettings) -> dict[str, Json]:
    """Return the settings that are not the defaults, without those that may hold a secret, and without paths."""
    default = RunSettings(settings.root)
    plain = {field.name: getattr(settings, field.name) for field in fields(settings) if field.repr}
    shown = {
        name: value
        for name, value in plain.items()
        if value != getattr(default, name) and name not in ("root", "probes", "baselines", "store")
    }
    return {name: value if isinstance(value, int | float | str) else str(value) for name, value in shown.items()}


def _versions_of_audits(names: Iterable[str]) -> dict[str, Json]:
    """Return the versions of audits (`KIND.NAME`), of the reading of answers and of their checks."""
    found: dict[str, Json] = {"reading of answers": reading.VERSION, "checks of answers": answer_checks.CHECKS_VERSION}
    for name in sorted({*names} - found.keys()):
        kind, _, audit = name.partition(".")
        with suppress(KeyError):
            found[name] = registry.get(kind, audit).version
    return found


def _versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of those of its dependencies that are installed."""
    found = {"python": platform.python_version(), "pytest-fairness": __version__}
    for requirement in metadata.requires("pytest-fairness") or ():
        name, extra = re.split(r"[^\w.-]", requirement, maxsplit=1)[0], re.search(r"extra == ['\"](\w+)", requirement)
        if extra is None or extra[1] not in ("test", "lint", "docs"):
            with suppress(metadata.PackageNotFoundError):
                found[name] = metadata.version(name)
    return found


# Check of a bundle.

RELATIVE, ABSOLUTE = 1e-6, 1e-9
"""Largest relative or absolute difference between two numbers that count as equal, because other versions of numerical
libraries may round otherwise."""
LOOSE = 0.02
"""The same for the rounded numbers in texts, if the versions of Python or of packages differ."""
SHOWN_DIFFERENCES = 3

Outcome = Literal["same", "differs", "not recomputable"]


@dataclass(frozen=True)
class ItemCheck:
    """Check of one item: whether measuring again gave the same, and what differs or prevents it."""

    probe: str
    id: str
    outcome: Outcome
    what: str = ""


@dataclass(frozen=True)
class Verification:
    """Result of the check of a bundle.

    Attributes:
        archive: the bundle's statement, and its changed members.
        report: the report document in the bundle.
        checks: the check of each item.
        problems: what is wrong with the report apart from its items.
        versions: versions that differ: name, there, here.
        found: each item of the report as it was measured again, by its ids in pytest and in the report.
    """

    archive: Archive
    report: Mapping[str, Json]
    checks: Sequence[ItemCheck]
    problems: Sequence[str]
    versions: Sequence[tuple[str, str, str]]
    found: Mapping[tuple[str, str], Mapping[str, Json]]

    @property
    def found_changes(self) -> bool:
        return bool(self.archive.changed or self.problems) or any(check.outcome == "differs" for check in self.checks)


def verify(path: Path, most_bytes: int = MOST_BYTES) -> Verification:
    """Check the digests in a bundle, and measure, compare and judge its answers again.

    Raises:
        BundleError: the file is no bundle, or was made to harm; see `unpack`.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary).resolve() / "bundle"
        folder.mkdir()
        archive = unpack(path, folder, most_bytes)
        try:
            return verified(archive, folder, folder.parent / "store.sqlite")
        except (LookupError, TypeError, ValueError, AttributeError, OSError, RecursionError) as error:
            raise BundleError(f"{path}: its content is not that of a bundle ({_reason(error, folder)}).") from error
        except FairnessError as error:
            raise BundleError(f"{path}: {_reason(error, folder)}") from error


class OpenBundle(NamedTuple):
    """Unpacked bundle: its report, what its `run.json` says, and a run that gives its recorded answers only."""

    report: Mapping[str, Json]
    described: Mapping[str, Json]
    targets: Mapping[tuple[str, str], RecordedTarget | None]
    run: Run
    items: RunItems


@contextmanager
def open_bundle(folder: Path, store: Path) -> Iterator[OpenBundle]:
    """Return a context with the unpacked bundle in a folder; the store, a new file, is for interim results."""
    parsed(folder / REPORT, (folder / REPORT).read_bytes())  # its size is checked before a schema reads it
    report = files.read(folder / REPORT)
    described = parsed(folder / RUN, (folder / RUN).read_bytes())
    project = folder / PROJECT
    project.mkdir(exist_ok=True)
    root = _inside(project, described["root"])
    settings = RunSettings(
        root=root,
        baselines=_inside(project, described["baselines"]),
        store=store,
        trials=described["trials"],
        judge="recorded",
        scorers=tuple((str(name), str(each)) for name, each in described["scorers"].items()),
        replay=True,
    )
    targets = {(nodeid, name): _target(plain) for nodeid, name, plain in described["items"]}
    with Run(settings, started=described["started"], engines=RecordedEngines, targets=RecordedTargets) as run:
        engines, models = cast("RecordedEngines", run.engines), cast("RecordedTargets", run.targets)
        engines.known = dict(map(_answer, parsed_lines(folder / ANSWERS)))
        models.recorded_judge = cast("Target | None", _target(described["judge"]))
        models.recorded_embedders = {
            name: cast("Target", _target(plain)) for name, plain in described["embedders"].items()
        }
        yield OpenBundle(report, described, targets, run, RunItems(run, root, settings.trials))


def verified(archive: Archive, folder: Path, store: Path) -> Verification:
    """Return the check of an unpacked bundle; see `verify`."""
    with open_bundle(folder, store) as bundle:
        report, described, targets = bundle.report, bundle.described, bundle.targets
        versions = _different(described["versions"], _versions())
        versions += _different(described["audits"], _versions_of_audits(described["audits"]))
        checker = _Checker(bundle, loose=bool(versions))
        checks = [checker.check(item, folder) for item in report["items"]]
    again = report_document(
        checker.results,
        tool_version="",
        target=report["target"],
        started=report["started"],
        seconds=report["seconds"],
        requests=report["requests"],
        targets=described["targets"],
    )
    again = json.loads(json_bytes(again))
    problems = [
        f"report.json: {text}"
        for part in ("summary", "purposes", "risks", *(() if versions else ("methods",)))
        for text in differences(report.get(part, {}), again[part], part, loose=bool(versions))
    ]
    lost = len(targets) - len(report["items"])
    if lost or targets.keys() != {(item["nodeid"], item["id"]) for item in report["items"]}:
        problems.append(f"report.json: its items are not those of {RUN}")
    return Verification(archive, report, checks, problems[:10], versions, checker.found)


class _Checker:
    """Check of the items of a report, which keeps the results as they were measured again."""

    def __init__(self, bundle: OpenBundle, *, loose: bool) -> None:
        self._report, self._mode, self._targets = bundle.report, bundle.described["mode"], bundle.targets
        self._hidden = {(nodeid, name) for nodeid, name in bundle.described.get("hidden", ())}
        self._run, self._items, self._loose = bundle.run, bundle.items, loose
        self.found: dict[tuple[str, str], dict[str, Json]] = {}
        self.results: list[ItemResult] = []

    def check(self, plain: Mapping[str, Json], folder: Path) -> ItemCheck:
        where = plain["probe"], plain["id"]
        self.results.append(self._as_reported(plain))
        if is_python_test(plain["nodeid"]):
            return ItemCheck(*where, "not recomputable", "a Python test measured it")
        if (plain["nodeid"], plain["id"]) in self._hidden:
            return ItemCheck(*where, "not recomputable", "it needs texts of answers, which the bundle does not hold")
        if plain["verdict"] == VerdictName.ERROR:
            return ItemCheck(*where, "not recomputable", f"it was not measured: {one_line(plain['reason'], 300)}")
        try:
            _inside(self._run.settings.root, plain["nodeid"].partition("::")[0])
            item = self._items.find(plain["nodeid"], plain["id"], plain["labels"])
            if (needed := _needed_model(item)) is not None:
                return ItemCheck(*where, "not recomputable", f"it needs {needed}, which is not in the bundle")
            target = self._targets.get((plain["nodeid"], plain["id"]))
            if target is None and item.asks:
                raise FairnessError(f"{RUN} names no target for it")  # noqa: TRY301 - as an error of its measurement
            result = _replayed(self._run, item, target, plain["nodeid"], self._mode)
        except ModelError as error:
            return ItemCheck(*where, "not recomputable", _reason(error, folder))
        except FairnessError as error:
            return ItemCheck(*where, "differs", f"verdict {plain['verdict']} there; here: {_reason(error, folder)}")
        found = self.found[plain["nodeid"], plain["id"]] = self._found(item, result, plain)
        self.results[-1] = replace(result, expected_failure=found["expected_failure"])
        unequal = list(differences(plain, found, "", loose=self._loose))
        more = f"; and {len(unequal) - SHOWN_DIFFERENCES} more" if len(unequal) > SHOWN_DIFFERENCES else ""
        return ItemCheck(*where, "differs" if unequal else "same", "; ".join(unequal[:SHOWN_DIFFERENCES]) + more)

    def _found(self, item: ProbeItem, result: ItemResult, plain: Mapping[str, Json]) -> dict[str, Json]:
        """Return the item of the report as measured again, with what only a run of pytest knows."""
        found: dict[str, Json] = json.loads(json_bytes(result.to_json()))
        found["creep"] = plain.get("creep")  # from the history of the project in git, which the bundle does not hold
        found["line"] = item.probe.source.line_of(item.audit_name)
        if item.settings.expected_failure(item.subject) is not None:
            found["expected_failure"] = plain["expected_failure"]
        if self._mode == "baselines":
            settings = self._run.settings
            stored = read_baseline(settings.baselines, item.baseline_name)
            entry = None if stored is None else stored.items.get(item.id)
            found["baseline"] = plain["baseline"] if entry is None else entry.for_reports()
        return found

    def _as_reported(self, plain: Mapping[str, Json]) -> ItemResult:
        return ItemResult(
            nodeid=plain["nodeid"],
            probe=plain["probe"],
            id=plain["id"],
            audit=plain["audit"],
            labels=plain["labels"],
            verdict=Verdict(VerdictName(plain["verdict"]), plain["reason"]),
            category=plain["labels"].get("category"),
            purpose=self._report["purposes"].get(plain["probe"]),
            risk=self._report.get("risks", {}).get(plain["probe"]),
            method=self._report["methods"].get(plain["audit"], {}),
            expected_failure=plain["expected_failure"],
        )


def _needed_model(item: ProbeItem) -> str | None:
    """Return the scorer or classifier without which an item cannot be measured, unless it is part of this package.

    Such a scorer is code or a model of the project, which a check must not run.
    """
    names = []
    if item.probe.reading.refusals.by == "scorer":
        names.append(item.probe.reading.refusals.scorer or "")
    preparation = item.audit.preparation(item)
    if preparation is not None and preparation.gives == "labels":
        return f"the classifier {preparation.model}"
    names += [preparation.model] if preparation is not None and preparation.gives == "score" else []
    definitions = item.probe.source.scorers or {}
    own = [name for name in names if definitions.get(name, name).partition(":")[0] not in BUILT_IN]
    return f"the scorer {own[0]}" if own else None


def _inside(folder: Path, relative: str) -> Path:
    """Return a path below a folder; raise `FairnessError` if it leads out of the folder."""
    parts = PurePosixPath(relative).parts
    if PurePosixPath(relative).is_absolute() or ".." in parts or "\\" in relative or ":" in relative:
        raise FairnessError(f"the path {one_line(relative, 60)!r} leads out of the bundle")
    return folder / relative


def _target(plain: Json) -> RecordedTarget | None:
    return None if plain is None else RecordedTarget(str(plain[0]), str(plain[1]))


def _answer(plain: Json) -> tuple[str, Response | str]:
    fields_ = dict(plain)
    key = fields_.pop("key")
    return (key, str(fields_["error"])) if "error" in fields_ else (key, Response(**fields_))


def _reason(error: BaseException, folder: Path) -> str:
    return one_line(str(error).replace(f"{folder}{os.sep}", ""), 300)


def _different(there: Mapping[str, Json], here: Mapping[str, Json]) -> list[tuple[str, str, str]]:
    names = sorted(there.keys() & here.keys())
    return [(name, str(there[name]), str(here[name])) for name in names if there[name] != here[name]]


# Comparison of two JSON values.

_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")
_FIRST = ("verdict", "value", "interval", "p_value", "change")
"""Keys whose differences are named first."""


def differences(there: Json, here: Json, place: str, *, loose: bool) -> Iterator[str]:
    """Yield what differs between two JSON values, as `value: 0.2 there, 0.1 here`.

    Args:
        there: the value in a bundle.
        here: the value as measured again.
        place: name of the value.
        loose: whether the numbers in texts may differ a little.
    """
    if isinstance(there, dict) and isinstance(here, dict):
        names = sorted({*there, *here}, key=lambda name: (name not in _FIRST, name))
        for name in names:
            yield from differences(there.get(name), here.get(name), f"{place}.{name}".lstrip("."), loose=loose)
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for index, pair in enumerate(zip(there, here, strict=True)):
            yield from differences(*pair, f"{place}[{index}]", loose=loose)
    elif not _equal(there, here, loose=loose):
        yield f"{place}: {_shown(there)} there, {_shown(here)} here"


def _equal(there: Json, here: Json, *, loose: bool) -> bool:
    numbers = isinstance(there, int | float) and isinstance(here, int | float)
    if numbers and not isinstance(there, bool) and not isinstance(here, bool):
        return math.isclose(there, here, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    if isinstance(there, str) and isinstance(here, str) and there != here:
        if COMMAND in here:
            pattern = ".+".join(map(re.escape, here.split(COMMAND)))
            return re.fullmatch(pattern, there, re.DOTALL) is not None
        if loose and _NUMBER.sub("#", there) == _NUMBER.sub("#", here):
            pairs = zip(_numbers(there), _numbers(here), strict=True)
            return all(math.isclose(*pair, rel_tol=LOOSE, abs_tol=ABSOLUTE) for pair in pairs)
        return False
    return bool(there == here) and type(there) is type(here)


def _numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in _NUMBER.findall(text)]


def _shown(value: Json) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return one_line(json.dumps(value, ensure_ascii=False).replace(COMMAND, "…"), 80)


def summary(verification: Verification) -> dict[Outcome, int]:
    """Return the number of items with each outcome."""
    outcomes = [check.outcome for check in verification.checks]
    every: tuple[Outcome, ...] = ("same", "differs", "not recomputable")
    return {outcome: outcomes.count(outcome) for outcome in every}
