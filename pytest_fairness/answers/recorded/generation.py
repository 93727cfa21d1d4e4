"""Reader of the recorded answers of a generation probe, one text per row."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from pytest_fairness.answers.recorded import fields
from pytest_fairness.answers.recorded.reader import TextReader
from pytest_fairness.probes import checks
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Answer


class GenerationReader(TextReader[GenerationProbe]):
    """Reader of a generation probe's answer file, which has one text per row.

    A row is left out if its value of an axis is not in the probe; letter case and blanks around a value do not matter.
    Without a column `trial`, the answers with the same labels get trial numbers in the file's order. In JSON Lines, a
    `text` that is `null` is a missing answer.
    """

    duplicate_trial_remedy: ClassVar[str] = "; if a column distinguishes the two rows, name it under `responses.strata`"

    @property
    def group_labels(self) -> tuple[str, ...]:
        """The probe's axes; see `TextReader.group_labels`."""
        return tuple(self.probe.axes)

    @cached_property
    def _values(self) -> dict[str, dict[str, str]]:
        """For each axis, the probe's values by their folded form; see `probes.checks.folded`."""
        return {name: {checks.folded(value): value for value in axis.values} for name, axis in self.probe.axes.items()}

    def answers(self) -> list[Answer]:
        """Return the answers of the probe; see `Reader.answers`."""
        self._require_values(self._values)
        return self._texts()

    def _columns(self) -> dict[str, str]:
        needed = [*self.probe.axes, *(("prompt",) if "prompt" in self.responses.columns else ())]
        strata = {stratum: stratum for stratum in self.responses.strata}
        return self._column_names(needed) | strata | self._column_names(["text"], ["trial"])

    def _labels(self, row: Row) -> dict[str, str] | None:
        labels, unknown = {}, []
        for name, column in self.columns.items():
            if name in ("text", "trial"):
                continue
            written = fields.text(row.fields[column])
            if name in self._values:
                value = self._values[name].get(checks.folded(written))
                if value is None:
                    unknown.append(column)
                    continue
                written = value
            labels[name] = written.strip()
        if unknown:
            self._leave_out(row, unknown, of_group=True)
            return None
        return labels
