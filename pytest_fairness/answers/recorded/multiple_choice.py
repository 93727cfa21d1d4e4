"""Reader of the recorded answers of a multiple-choice probe, one answer per row."""

from __future__ import annotations

from functools import cached_property

from pytest_fairness.answers.recorded.reader import TextReader
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import checks
from pytest_fairness.probes.data_file import as_line
from pytest_fairness.probes.multiple_choice.model import MultipleChoiceProbe
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Answer


class MultipleChoiceReader(TextReader[MultipleChoiceProbe]):
    """Reader of a multiple-choice probe's answer file, which has one text per row.

    A row names the question or, for BBQ's questions, the category and `example_id`. Rows of questions that the probe
    does not have are left out. Letters in the answers mean the options in the probe's order; see the key `shuffle`.
    """

    @cached_property
    def _labels_by_question(self) -> dict[str, dict[str, str]]:
        """Labels of the answers to each question, by the folded name of the question; see `probes.checks.folded`."""
        return {checks.folded(question.name): self.probe.labels(question) for question in self.probe.questions.values()}

    def answers(self) -> list[Answer]:
        """Return the answers of the probe; see `Reader.answers`."""
        answers = self._texts()
        answered = {answer.labels["question"] for answer in answers}
        missing = [name for name in self.probe.questions if name not in answered]
        if missing:
            what, them = f"the question {missing[0]!r} has no row", "this question"
            if len(missing) > 1:
                what = f"{len(missing)} of the probe's questions have no row (the first is {missing[0]!r})"
                them = "these questions"
            raise ProbeError(f"{self.name}:1: {what}. Add answers to {them}, or leave {them} out of the probe")
        return answers

    def _columns(self) -> dict[str, str]:
        has_names = "question" in self.responses.columns or self.has_column("question")
        published = not has_names and ("example_id" in self.responses.columns or self.has_column("example_id"))
        needed = ["category", "example_id"] if published else ["question"]
        return self._column_names([*needed, "text"], ["trial"])

    def _labels(self, row: Row) -> dict[str, str] | None:
        """Return the labels of a row; `None` if the probe does not have the row's question."""
        columns = [self.columns[name] for name in ("question", "category", "example_id") if name in self.columns]
        name = "-".join(as_line(row.fields[column]) for column in columns)
        found = self._labels_by_question.get(checks.folded(name))
        if found is None:
            self._leave_out(row, columns, of_group=False)
        return found
