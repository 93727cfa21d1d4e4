"""Reader of the recorded answers of a coreference probe, one answer per row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from pytest_fairness.answers.recorded import fields
from pytest_fairness.answers.recorded.reader import Reader
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import checks
from pytest_fairness.probes.coreference.model import PRONOUNS, VERSIONS, CoreferenceProbe
from pytest_fairness.probes.data_file import as_line
from pytest_fairness.probes.diagnostics import raise_file_errors
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Answer, Json

OCCUPATIONS = ("masculine", "feminine")


class CoreferenceReader(Reader[CoreferenceProbe]):
    """Reader of a coreference probe's answer file, which has one answer per row.

    A row names the sentence (a name under the probe's key `items`), the occupation that the sentence mentions first,
    and the pronoun. For WinoBias sentences, a row names the line and the version (`pro` or `anti`) instead. If the
    probe lists no sentences, a row also names the sentence's two occupations (`masculine` and `feminine`). Rows of
    sentences that are not in the probe are left out. Without a column `trial`, the answers to a prompt get trial
    numbers in the file's order.
    """

    @cached_property
    def _items(self) -> dict[str, str]:
        """Names of the probe's ambiguous sentences by their folded form; see `probes.checks.folded`."""
        return {checks.folded(name): name for name in self.probe.sentences}

    def answers(self) -> list[Answer]:
        """Return the answers of the probe; see `Reader.answers`."""
        found: list[tuple[Json, dict[str, str], int]] = []
        for row in self.rows():
            labels = self._labels(row)
            if labels is None:
                continue
            where = (value for name, value in labels.items() if name != "wording")
            trial = self.trial_numbers.number(row, tuple(labels.values()), where)
            if trial is not None:
                found.append((row.fields.get(self.columns["text"]), labels, trial))
        self.trial_numbers.raise_errors()
        self._require_items({labels.get("item") or labels["line"] for _, labels, _ in found})
        return [fields.answer(written, labels, trial, self.probe) for written, labels, trial in found]

    def _columns(self) -> dict[str, str]:
        if self.probe.is_winobias:
            return self._column_names(["line", "version", "text"], ["trial"])
        names = ["first", "pronoun", "text"]
        item = self.responses.columns.get("item", "item")
        names += ["item"] if self._items or self.has_column("item") or self.has_column(item) else []
        names += [] if self._items else OCCUPATIONS
        return self._column_names(names, ["trial"])

    def _labels(self, row: Row) -> dict[str, str] | None:
        """Return the labels of a row; `None` if the row has an error, or its sentence is not in the probe."""
        written = {name: as_line(row.fields.get(column)) for name, column in self.columns.items() if name != "text"}
        if self.probe.is_winobias:
            number = fields.whole_number(written["line"])
            version = self._one_of(row, self.columns["version"], written["version"], VERSIONS)
            if number is None:
                self.trial_numbers.add_error(
                    row, f"{self.columns['line']!r} must be the running number of a WinoBias sentence"
                )
            if number is None or version is None:
                return None
            if str(number) not in self.probe.pairs:
                self._leave_out(row, [self.columns["line"]], of_group=False)
                return None
            return self.probe.labels_of_line(str(number), version)
        names, item = self._item(row, written)
        if names is None:
            return None
        first = self._one_of(row, self.columns["first"], written["first"], names)
        pronoun = self._one_of(row, self.columns["pronoun"], written["pronoun"], PRONOUNS)
        if first is None or pronoun is None:
            return None
        if self._items:
            return self.probe.labels(item, first, pronoun)
        return {"item": item, "first": first, "pronoun": pronoun, **dict(zip(OCCUPATIONS, names, strict=True))}

    def _item(self, row: Row, written: Mapping[str, str]) -> tuple[tuple[str, str] | None, str]:
        """Return the two occupations of a row and the name of its sentence.

        The occupations are `None` if the row has an error, or its sentence is not in the probe.
        """
        if self._items:
            item = self._items.get(checks.folded(written["item"]))
            if item is None:
                self._leave_out(row, [self.columns["item"]], of_group=False)
                return None, ""
            asked = self.probe.sentences[item]
            return (asked.masculine, asked.feminine), item
        names = written["masculine"], written["feminine"]
        if not all(names) or checks.folded(names[0]) == checks.folded(names[1]):
            wanted = " and ".join(repr(self.columns[name]) for name in OCCUPATIONS)
            self.trial_numbers.add_error(row, f"{wanted} must name two different occupations")
            return None, ""
        return names, written.get("item") or "/".join(names)

    def _one_of(self, row: Row, column: str, written: str, choices: tuple[str, ...]) -> str | None:
        found = next((choice for choice in choices if checks.folded(choice) == checks.folded(written)), None)
        if found is None:
            self.trial_numbers.add_error(
                row, f"{column!r} must be {' or '.join(map(repr, choices))}, not {written[:60]!r}"
            )
        return found

    def _require_items(self, existing: set[str]) -> None:
        names = [*self.probe.sentences] if self._items else [*self.probe.pairs]
        lacking = [name for name in names if name not in existing]
        what = "line" if self.probe.is_winobias else "item"
        remedy = f"Add its answers, or remove the {what} from the probe"
        raise_file_errors([f"{self.name}:1: no row has the {what} {name!r}. {remedy}" for name in lacking], self.name)
        if not existing:
            raise ProbeError(
                f"{self.name}:1: no row has an item of this probe. Check the file under `responses`, and its columns"
            )
