"""What the store remembers of runs: history, report of the last run, recorded answers, word tables, samples."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pytest_fairness import kinds
from pytest_fairness.answers import reading
from pytest_fairness.asking.claims import LAST_RUN
from pytest_fairness.asking.database import in_transaction
from pytest_fairness.asking.store import Store
from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.options import MAX_TRIALS, RunSettings
from pytest_fairness.probes import Probe
from pytest_fairness.probes.shared_keys import max_trials
from pytest_fairness.records import (
    Answer,
    Json,
    Prompt,
    Request,
    Response,
    VerdictName,
    current_id,
    target_name,
    without_target,
)
from pytest_fairness.reports.tables import DataTable, word_table
from pytest_fairness.reports.view import status_of
from pytest_fairness.run.items import items_of, words_of
from pytest_fairness.run.run import Run

# History of runs in the store: value, interval and verdict of each item of each run.
#
# The store holds a part of each run's report document. Replays are not stored, because they measure old answers
# again.

MAX_RUNS = 500
"""Maximum number of runs in a store; older runs are deleted."""
SHOWN = 30
"""Maximum number of runs that a trend shows."""

Key = tuple[str, str]
"""Key of an item: name of its probe, and its id."""

Point = dict[str, Json]
"""Result of one item in one run: `probe`, `id`, `started`, `tool`, `target`, `value`, `interval`, `verdict`; for an
item marked `xfail`, also its `status`."""

_encode = json.JSONEncoder(separators=(",", ":")).encode
_ITEM = ("probe", "id", "value", "interval", "verdict")


class History:
    """Table of earlier runs in a store."""

    def __init__(self, store: Store, max_runs: int = MAX_RUNS) -> None:
        self.database = store.database
        self._max_runs = max_runs

    def add(
        self, document: Mapping[str, Json], targets: Mapping[Key, str], servers: Mapping[str, str] | None = None
    ) -> None:
        """Add the results in a report document to the history, if any item was measured."""
        items = [
            {
                **{name: item[name] for name in _ITEM},
                **({"status": status_of(item)} if item.get("expected_failure") else {}),
                "target": targets.get(_key(item), document["target"]),
            }
            for item in document["items"]
        ]
        if all(item["value"] is None for item in items):
            return
        run = _encode(
            {
                "started": document["started"],
                "tool": document["tool"],
                "servers": dict(servers or {}),
                **{name: document["requests"][name] for name in ("sent", "reused")},
                "items": items,
            }
        )
        self._put(run)

    def points(self) -> Iterator[Point]:
        """Yield the results of all items in all runs, the oldest run first."""
        for run in self._runs("ASC"):
            with self.database.decoding_errors():
                points = [{"started": run["started"], "tool": run["tool"], **item} for item in run["items"]]
            yield from points

    def always_inconclusive(self, targets: Mapping[Key, str], runs: int) -> set[Key]:
        """Return the items that were inconclusive in each of the last `runs` runs.

        Runs in which an item was not selected, could not be measured or was not judged do not count.
        """
        open_items = dict.fromkeys(targets, 0) if runs else {}
        found = set(targets) - set(open_items)
        for run in self._runs("DESC") if open_items else ():
            with self.database.decoding_errors():
                judged = [(_key(item), VerdictName(item["verdict"]), item["target"]) for item in run["items"]]
            for key, verdict, target in judged:
                if key not in open_items or target != targets[key] or verdict.outcome in ("error", "measured"):
                    continue
                open_items[key] += 1
                if verdict is not VerdictName.INCONCLUSIVE:
                    del open_items[key]
                elif open_items[key] == runs:
                    del open_items[key]
                    found.add(key)
            if not open_items:
                break
        return found

    def _runs(self, order: Literal["ASC", "DESC"]) -> Iterator[dict[str, Json]]:
        for (text,) in self.database.execute(f"SELECT run FROM history ORDER BY sequence {order}"):  # noqa: S608 - one of two constants
            with self.database.decoding_errors():
                run: dict[str, Json] = json.loads(text)
                run["items"] = [{**item, "id": current_id(item["id"])} for item in run["items"]]
            yield run

    @in_transaction
    def _put(self, run: str) -> None:
        self.database.execute("INSERT INTO history (run) VALUES (?)", (run,))
        oldest = "(SELECT max(sequence) FROM history) - ?"
        self.database.execute(f"DELETE FROM history WHERE sequence <= {oldest}", (self._max_runs,))  # noqa: S608 - a constant

    def trends(self, targets: Mapping[Key, str], servers: Mapping[str, str] | None = None) -> dict[Key, list[Point]]:
        """Return for each item its results in the last runs with new answers, for the trends in reports.

        A run that only reused recorded answers does not count. If a run reused some answers, or read all answers from
        files, an item with the same value and interval as in its previous result gets no new result.
        """
        found: dict[Key, list[Point]] = defaultdict(list)
        for run in self._runs("ASC"):
            with self.database.decoding_errors():
                reused = run.get("reused", 0)
                items = run["items"] if run.get("sent", 0) or not reused else []
                for item in items:
                    own, target = found[_key(item)], item["target"]
                    same_server = run.get("servers", {}).get(target) == (servers or {}).get(target)
                    repeated = reused or not run.get("sent", 0)
                    again = repeated and own and all(own[-1][name] == item[name] for name in ("value", "interval"))
                    if targets.get(_key(item)) == target and same_server and not again:
                        own.append({"started": run["started"], "tool": run["tool"], **item})
        return {key: points[-SHOWN:] for key, points in found.items() if points}


def _key(item: Mapping[str, Json]) -> Key:
    return item["probe"], item["id"]


# Report document of the last run that had items, kept in the store for the command `export`.

LEFT_OUT = ("examples", "suggestions")
"""Details of items that are not stored, because no exported table needs them."""


def store_last_run(
    store: Store, document: Mapping[str, Json], targets: Mapping[tuple[str, str], str], trials: int | None
) -> None:
    """Store the report document of a run, in place of the previous run's document."""
    items = [
        {
            **item,
            "details": {name: detail for name, detail in item["details"].items() if name not in LEFT_OUT},
            "explanation": {**item["explanation"], "examples": [], "finding": None},
            "target": targets.get((item["probe"], item["id"])),
        }
        for item in document["items"]
    ]
    store.cache.put(LAST_RUN, {**document, "items": items, "trials": trials})


def last_run(store: Store) -> dict[str, Json] | None:
    """Return the report document of the last run; `None` if no run is stored.

    The document has the additional key `trials`, and each of its items the additional key `target`; see
    `store_last_run`.
    """
    return store.cache.get(LAST_RUN, dict)


# Lookup of the recorded answers to a probe's prompts, from all targets or from one target.

Recorded = tuple[str, Prompt, Response]
"""A target's identity, a prompt, and the target's recorded response to this prompt."""


def recorded(run: Run, probe: Probe, only: str | None = None) -> list[Recorded]:
    """Return the recorded answers to a probe's prompts, ordered by target; send no requests.

    Raises:
        AnswersMissing: no answers to the probe's prompts are recorded.
    """
    if not run.settings.store.exists():
        raise FairnessError(
            f"{run.settings.store}: there is no store at this path. Give the path of your store with --store."
        )
    by_target: dict[str, dict[Request, Response]] = {}
    for each in run.store.all_recorded():
        by_target.setdefault(each.target, {})[each.request] = each.response
    targets = sorted(by_target if only is None else _identities_of(run, only, by_target))
    found = [
        (target, prompt, response) for target in targets for prompt, response in _answers_of(probe, by_target[target])
    ]
    if not found:
        whose, cure = "" if only is None else f" of {only}", "Run `pytest --fairness` on the probe first."
        if by_target and not targets:
            cure = f"The store has answers of {'; '.join(sorted(by_target))}: name one of these targets with --target."
        raise AnswersMissing(f"no answers{whose} to {probe.source.path} are recorded in {run.settings.store}. {cure}")
    return found


def _identities_of(run: Run, name: str, identities: Collection[str]) -> set[str]:
    """Return the identities of the recorded targets to which a name refers; an empty set without such a target.

    The name is, in this order of priority: the identity of a recorded target; the name of the target in the settings,
    which stands for all its versions; or a name without address, which stands for the targets at all addresses.
    """
    if name in identities:
        return {name}
    identity = run.targets.named().identity
    if found := {target for target in identities if target == identity or target.startswith(f"{identity} version ")}:
        return found
    return {target for target in identities if target.startswith(f"{name} at ")}


def _answers_of(probe: Probe, known: Mapping[Request, Response]) -> Iterator[tuple[Prompt, Response]]:
    # All recorded trials count, because the probe's number of trials may have changed since they were recorded.
    trials = max((request.trial for request in known if request.trial < MAX_TRIALS), default=0) + 1
    prompts = list(probe.prompts(trials))
    answers: list[Answer] = []
    while found := [(prompt, known[prompt.request]) for prompt in prompts if prompt.request in known]:
        answers += [reading.answer(prompt, response, probe.language) for prompt, response in found]
        yield from found
        prompts = probe.follow_ups.next_prompts(answers)


# Word tables of whole runs, from the answers that the store holds.


def words_of_run(document: Mapping[str, Json], settings: RunSettings) -> DataTable:
    """Return the word table of a run's measured items, made from the probe files and the recorded answers.

    Items of Python tests and of the command `measure` are left out, because they have no probe file.
    """
    by_source: dict[tuple[Path, str | None], list[Mapping[str, Json]]] = defaultdict(list)
    for item in document["items"]:
        if is_of_probe_file(item) and item["value"] is not None:
            path = settings.root / item["nodeid"].partition("::")[0]
            by_source[path, item.get("target")].append(item)
    tables = []
    for (path, target), items in by_source.items():
        with Run(replace(settings, target=target or settings.target)) as run:
            probe = run.load(path)
            known = {item.id: item for item in items_of(probe)}
            answers = _answers(run, probe, target, document.get("trials"))
        for item in items:
            own = current_id(item["id"])
            name = target_name(own, item["labels"])
            found = known.get(own if name is None else without_target(own, name))
            if found is None:
                raise FairnessError(
                    f"{path}: the probe has no item {item['id']} any more. Run `pytest --fairness` again."
                )
            tables.append(words_of(replace(found, target=name), answers, item["details"]))
    return DataTable.joined(tables, word_table([]))


def words_of_file(document: Mapping[str, Json], probe: Probe) -> DataTable:
    known, answers = {item.id: item for item in items_of(probe)}, kinds.recorded_answers(probe)
    measured = [item for item in document["items"] if item["value"] is not None]
    return DataTable.joined(
        (words_of(known[item["id"]], answers, item["details"]) for item in measured), word_table([])
    )


def is_of_probe_file(item: Mapping[str, Json]) -> bool:
    """Return whether an item of a report document belongs to a probe file, not to a Python test or to `measure`."""
    file: str = item["nodeid"].partition("::")[0]
    return file.lower().endswith((".yaml", ".yml"))


def _answers(run: Run, probe: Probe, target: str | None, trials: int | None) -> list[Answer]:
    """Return the answers of a probe: from its file (key `responses`) or, without this key, from the store.

    Recorded answers of trials that the run did not have are left out.

    Raises:
        AnswersMissing: no answers are recorded, or answers of several targets are recorded and `target` names none of
            them.
    """
    if probe.responses is not None:
        return run.measurer.classified(probe, kinds.recorded_answers(probe))
    found = recorded(run, probe, target)
    targets = sorted({asked for asked, _, _ in found})
    if len(targets) > 1:
        raise AnswersMissing(
            f"{probe.source.path}: answers of several targets are recorded. Choose one with --target: "
            f"{'; '.join(targets)}"
        )
    draws = max_trials(probe.trials, trials)
    answers = [
        reading.answer(prompt, response, probe.language) for _, prompt, response in found if prompt.trial < draws
    ]
    return run.measurer.classified(probe, probe.follow_ups.measured(answers))
