"""Probes that measure parts of structured answers: calls of tools, their arguments, and values in JSON."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from pytest_fairness.json_paths import compiled
from pytest_fairness.languages.language import Language
from pytest_fairness.probes import checks
from pytest_fairness.probes.answer_reading import AnswerReading
from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.base import AnswerSettings
from pytest_fairness.probes.checks import Content, canonical
from pytest_fairness.probes.conversations import ConversationProbe
from pytest_fairness.probes.diagnostics import Diagnostic, quoted, suggestion
from pytest_fairness.probes.field_types import Line, Text, block_text
from pytest_fairness.records import AnswerFormat, Selection

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
"""JSON Schema of a tool without arguments."""


def _single_value_path(path: str) -> str:
    try:
        single = compiled(path).single
    except ValueError as error:
        raise PydanticCustomError("path", "must be a JSONPath: {reason}", {"reason": str(error)}) from error
    if not single:
        raise PydanticCustomError(
            "path", "must lead to one value, such as $.items[0].name: remove wildcards, slices, filters and `..`"
        )
    return path


class Tool(ProbeModel):
    """Tool that the target may call."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = Field(
        description="Name of the tool: letters, digits, `_` and `-`."
    )
    description: Text | None = Field(
        default=None, description="Description of the tool for the model: what the tool does, and when to call it."
    )
    parameters: dict[str, Any] = Field(
        default=NO_ARGUMENTS, description="JSON Schema of the arguments. Default: no arguments."
    )

    @property
    def definition(self) -> dict[str, Any]:
        """Definition of the tool in the form of OpenAI's API."""
        about = {} if self.description is None else {"description": block_text(self.description)}
        return {"type": "function", "function": {"name": self.name, **about, "parameters": self.parameters}}


class StructuredAnswerSettings(AnswerSettings):
    """Settings of the part of an answer that is measured."""

    tool: Line | None = Field(
        default=None,
        description="Name of the tool whose calls are measured. With `path`, an argument of the call is measured. "
        "Without `path` (only in counterfactual probes), the measured answer is whether the tool is called.",
    )
    path: Annotated[Line, AfterValidator(_single_value_path)] | None = Field(
        default=None,
        description="JSONPath of the measured value, such as $.decision. The path applies to an answer in JSON or, "
        "with `tool`, to the arguments of the call.",
    )
    label: Line | None = Field(
        default=None,
        description="Name of the decision in answers, such as `Ruling` for answers that end in `Ruling: approve`, in "
        "addition to common names (answer, decision, verdict, …). The last line with such a name counts.",
    )


class StructuredProbe(ConversationProbe):
    """Base model of probes that can measure a part of an answer."""

    tools: tuple[Tool, ...] = Field(
        default=(),
        min_length=1,
        description="The tools that the target may call, sent with every request; no tool is run. Leave `tools` out "
        "for an application that has its own tools.",
    )

    @property
    @abstractmethod
    def _structured_answer(self) -> StructuredAnswerSettings:
        """The value of the key `answer`."""

    @property
    @abstractmethod
    def _value_format(self) -> AnswerFormat:
        """The format of answers or, with `path`, of the measured values."""

    @cached_property
    def language(self) -> Language:
        """The language of the answers, with the label of the decision that the probe declares."""
        language, label = super().language, self._structured_answer.label
        return replace(language, decisions=language.decisions.with_label(label)) if label else language

    @cached_property
    def reading(self) -> AnswerReading:
        """Form of the answers or, with `tool` or `path`, of the measured part of an answer."""
        answer = self._structured_answer
        form: AnswerFormat = (
            "calls" if answer.tool is not None else "structured" if answer.path is not None else self._value_format
        )
        if self.measure == "thoughts":
            return replace(super().reading, format=form, selection=Selection(None, None, thoughts=True))
        if answer.tool is None and answer.path is None:
            return replace(super().reading, format=form)
        return replace(super().reading, format=form, selection=Selection(answer.tool, answer.path, self._value_format))

    @cached_property
    def _tools_as_json(self) -> str:
        return canonical([tool.definition for tool in self.tools]) if self.tools else ""

    def _structure_fingerprint(self) -> dict[str, str]:
        """Return the tools, and the part of an answer that is measured; see `Probe.fingerprint`."""
        answer = self._structured_answer
        parts = {name: str(value) for name, value in (("tool", answer.tool), ("path", answer.path)) if value}
        parts |= {"label": answer.label} if answer.label else {}
        parts |= {"measure": "thoughts"} if self.measure == "thoughts" else {}
        return parts | ({"tools": self._tools_as_json} if self.tools else {})


def diagnostics(data: Content) -> Iterator[Diagnostic]:
    """Yield diagnostics for tools that do not fit the key `answer`."""
    tools = [(i, tool) for i, tool in checks.items(data.get("tools")) if isinstance(tool, dict)]
    names = [tool["name"] for _, tool in tools if isinstance(tool.get("name"), str)]
    yield from checks.repeats(
        [(("tools", i, "name"), tool.get("name")) for i, tool in tools], "each tool needs its own name", str
    )
    measured = checks.mapping(data.get("answer")).get("tool")
    if "tools" in data and checks.is_recorded(data):
        message = "a probe with `responses` sends no requests: remove `tools` or `responses`"
        yield Diagnostic(("tools",), message, at_key=True)
    elif "tools" in data and measured is None:
        message = "no audit measures calls of these tools: name the tool to measure, `answer: {tool: …}`"
        yield Diagnostic(("tools",), message, at_key=True)
    elif names and isinstance(measured, str) and measured not in names:
        message = f"{quoted(measured)} is not one of the probe's tools{suggestion(measured, names)}"
        yield Diagnostic(("answer", "tool"), message)
