"""Reader of the recorded answers of a stereotype probe, one answer per row."""

from __future__ import annotations

from functools import cached_property

from pytest_fairness.answers.recorded.reader import TextReader
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import checks
from pytest_fairness.probes.data_file import as_line
from pytest_fairness.probes.diagnostics import suggestion
from pytest_fairness.probes.stereotype.model import StereotypeProbe
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Answer


class StereotypeReader(TextReader[StereotypeProbe]):
    """Reader of a stereotype probe's answer file, which has one text per row.

    Rows whose case or group is not in the probe are left out; letter case and blanks around a name do not matter.
    Without a column `trial`, the answers for a case and group get trial numbers in the file's order.
    """

    @property
    def group_labels(self) -> tuple[str, ...]:
        """The label `group`; see `TextReader.group_labels`."""
        return ("group",)

    @cached_property
    def _labels_by_case(self) -> dict[tuple[str, str], dict[str, str]]:
        """Labels of the answers by the folded forms of case and group; see `probes.checks.folded`."""
        return {
            (checks.folded(case.name), checks.folded(group)): self.probe.labels(case, group or None)
            for case in self.probe.open_cases
            for group in case.groups or ("",)
        }

    def answers(self) -> list[Answer]:
        """Return the answers of the probe; see `Reader.answers`."""
        answers = self._texts()
        if not answers:
            existing = dict.fromkeys(as_line(row.fields.get(self.columns["case"])) for row in self.rows())
            names = ", ".join(map(repr, list(existing)[:10]))
            near = suggestion(next(iter(existing)), [case.name for case in self.probe.open_cases])
            raise ProbeError(
                f"{self.name}:1: no row has a case of the probe. Correct the names in the file or in the probe; the "
                f"file has the cases {names}{near}"
            )
        # A single case without answers is no error here; its item reports that the answers are missing.
        return answers

    def _columns(self) -> dict[str, str]:
        needed = ["case", *(["group"] if any(group for _, group in self._labels_by_case) else []), "text"]
        return self._column_names(needed, ["trial"]) | {stratum: stratum for stratum in self.responses.strata}

    def _labels(self, row: Row) -> dict[str, str] | None:
        """Return the labels of a row; `None` if the probe does not have the row's case or group."""
        case, group = (
            checks.folded(as_line(row.fields[self.columns[name]])) if name in self.columns else ""
            for name in ("case", "group")
        )
        found = self._labels_by_case.get((case, group)) or self._labels_by_case.get((case, ""))
        if found is None:
            is_known = any(case == name for name, _ in self._labels_by_case)
            self._leave_out(row, [self.columns["group" if is_known else "case"]], of_group=is_known)
            return None
        return found | {name: as_line(row.fields[name]) for name in self.responses.strata}
