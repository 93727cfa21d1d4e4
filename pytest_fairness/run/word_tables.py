"""Word tables of whole runs, from the answers that the store holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pytest_fairness import kinds
from pytest_fairness.answers import reading
from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.options import RunSettings
from pytest_fairness.probes import Probe
from pytest_fairness.probes.keys.interim_stages import max_trials
from pytest_fairness.records import Answer, Json
from pytest_fairness.reports.items.report_items import target_name
from pytest_fairness.reports.tables.data_table import DataTable
from pytest_fairness.reports.tables.words import words
from pytest_fairness.run.items.item_words import words_of
from pytest_fairness.run.items.probe_items import items_of
from pytest_fairness.run.recorded import recorded
from pytest_fairness.run.run import Run


def words_of_run(document: Mapping[str, Json], settings: RunSettings) -> DataTable:
    """Return the word table of a run's measured items, made from the probe files and the recorded answers.

    Items of Python tests are left out, because they have no probe file.

    Args:
        document: the report document, with `trials` and each item's `target` if known; see `last_run`.
        settings: settings with the store, and the root to which the paths of probe files are relative.

    Raises:
        FairnessError: a probe file has changed or cannot be read, or its answers are not recorded.
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
            name = target_name(item["id"])
            found = known.get(item["id"] if name is None else item["id"].removesuffix(f"@{name}"))
            if found is None:
                raise FairnessError(
                    f"{path}: the probe has no item {item['id']} any more. Run `pytest --fairness` again."
                )
            tables.append(words_of(replace(found, target=name), answers, item["details"]))
    return DataTable.joined(tables, words([]))


def words_of_file(document: Mapping[str, Json], probe: Probe) -> DataTable:
    """Return the word table of the measured items of a probe whose answers are in a file."""
    known, answers = {item.id: item for item in items_of(probe)}, kinds.recorded_answers(probe)
    measured = [item for item in document["items"] if item["value"] is not None]
    return DataTable.joined((words_of(known[item["id"]], answers, item["details"]) for item in measured), words([]))


def is_of_probe_file(item: Mapping[str, Json]) -> bool:
    """Return whether an item of a report document belongs to a probe file, rather than to a Python test."""
    file: str = item["nodeid"].partition("::")[0]
    return not file.endswith(".py")


def _answers(run: Run, probe: Probe, target: str | None, trials: int | None) -> list[Answer]:
    """Return the answers of a probe: from its file (key `responses`) or, without this key, from the store.

    Recorded answers of trials that the run did not have are left out.

    Raises:
        AnswersMissing: no answers are recorded, or answers of several targets are recorded and `target` names none of
            them.
    """
    if probe.responses is not None:
        return run.answers.classified(probe, kinds.recorded_answers(probe))
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
    return run.answers.classified(probe, probe.follow_ups.measured(answers))
