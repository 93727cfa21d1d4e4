"""Conversations, calls of tools and other structured answers, and free texts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from pytest_fairness.languages import Language
from pytest_fairness.probes import field_types
from pytest_fairness.probes.base import AnswerSettings, Probe
from pytest_fairness.probes.diagnostics import Diagnostic, Part, quoted, suggestion
from pytest_fairness.probes.field_types import Line, ProbeModel, Text, block_text, canonical
from pytest_fairness.probes.prompts import FollowUps
from pytest_fairness.probes.shared_keys import AnswerReading, RefusalSettings
from pytest_fairness.records import Answer, AnswerFormat, Message, Prompt, Reply, Selection, Status, reply_in
from pytest_fairness.records.requests import compiled_path

# Conversations: prompts of several messages, and turns in which the next user message follows the model's answer.
#
# `ConversationProbe` is the base model of the kinds of probe that have conversations.

TURN = "turn"
"""Name of the label that numbers the answers of a conversation, from the second turn on."""
MeasuredTurn = Literal["last", "all", "thoughts"] | int

Turns = dict[int, Answer]
"""The answers of one conversation, by turn; the first turn is 1."""


class ConversationMessage(ProbeModel):
    """Message of a conversation."""

    role: Literal["user", "assistant"] = Field(description="Role of the speaker.")
    content: Text = Field(description="Text of the message, with placeholders as in `prompt`.")


class ConversationProbe(Probe):
    """Base model of probes whose prompts can be conversations.

    Class attributes:
        labels_key: the key whose keys are labels of answers; empty if the file names no labels.
    """

    prompt_keys: ClassVar[tuple[str, ...]] = ("prompt", "messages")
    request_keys: ClassVar[tuple[str, ...]] = ("variants", "messages", "turns")
    labels_key: ClassVar[str] = ""

    messages: tuple[ConversationMessage, ...] | None = Field(
        default=None,
        min_length=1,
        description="A conversation in place of `prompt`. Its last message is a user message, which the model answers.",
    )
    turns: tuple[Text, ...] = Field(
        default=(),
        min_length=1,
        description="User messages after the first answer. Each message is sent with the conversation so far, after "
        "the model has answered the previous message.",
    )
    measure: Literal["last", "all", "thoughts"] | Annotated[int, Field(ge=1)] = Field(
        default="last",
        description="Which of the model's answers in a conversation is measured: last, all (joined to one text), or a "
        "number: 1 is the first answer, before `turns`. thoughts measures what the model thinks before its last "
        "answer.",
    )

    @classmethod
    def _conversation_faults(cls, data: Part, *, texts: bool) -> Iterator[Diagnostic]:
        """Yield diagnostics for the keys of conversations; `texts` says whether answers are texts, to be joined."""
        written = [key for key in cls.prompt_keys if key in data]
        for key in written[1:]:
            yield data[key].key_fault(f"a probe has either `{written[0]}` or `{key}`: remove one of them")
        messages, turns, measure = data["messages"].mappings, data["turns"], data["measure"]
        if messages and messages[-1]["role"].value == "assistant":
            yield messages[-1]["role"].fault(
                "the model answers the last message: end with a message of the role `user`"
            )
        if "turns" in data and TURN in data[cls.labels_key]:
            yield data[cls.labels_key][TURN].key_fault(
                f"rename {quoted(TURN)} under `{cls.labels_key}`: in a probe with a conversation, answers already have "
                "a label of this name"
            )
        number = 1 + len(list(turns))
        if measure.value == "thoughts":
            if not texts or "path" in data["answer"]:
                yield measure.key_fault(
                    "only a probe whose answers are texts, without `path`, can measure thoughts: remove `measure`"
                )
        elif measure.value is not None and not isinstance(turns.value, list):
            yield measure.key_fault("only a conversation with `turns` has several answers: remove `measure`")
        elif isinstance(measure.value, int) and measure.value > number:
            yield measure.fault(f"there is no turn {measure.value}: the conversation has {number} turns")
        elif measure.value == "all" and not texts:
            yield measure.fault("only answers that are texts can be joined: write `measure: last`")

    @cached_property
    def follow_ups(self) -> FollowUps:
        if not self.turns or self.responses is not None:
            return FollowUps()
        return ConversationTurns(self._next_turn, 1 + len(self.turns), self.measure, self._has_calls)

    def _next_turn(self, answered: Turns) -> Prompt:
        last = answered[max(answered)]
        first = without_turn(last.labels)
        user_texts = [self._filled_template(text, first) for text in (self._first_template(first), *self.turns)]
        past = [*self._opening(first)]
        for turn in sorted(answered):
            reply = reply_to(answered[turn], calls=self._has_calls)
            past += [Message("user", user_texts[turn - 1]), Message("assistant", reply.text)]
        labels = {**first, TURN: str(len(answered) + 1)}
        return self._asked_separately(self._prompt(user_texts[len(answered)], labels, last.trial, tuple(past)), first)

    @property
    def _has_calls(self) -> bool:
        return self.reading.selection is not None and self.reading.selection.tool is not None

    @abstractmethod
    def _first_template(self, labels: Mapping[str, str]) -> str:
        """Return the template of the first prompt of the conversation with these labels."""

    @abstractmethod
    def _filled_template(self, text: str, labels: Mapping[str, str]) -> str:
        """Return the template `text` with each placeholder replaced by its value for these labels."""

    @abstractmethod
    def _prompt(self, text: str, labels: Mapping[str, str], trial: int, past: tuple[Message, ...]) -> Prompt:
        """Return the prompt with this text and these labels; `past` holds the messages before it."""

    def _opening(self, labels: Mapping[str, str]) -> tuple[Message, ...]:
        opening = (self.messages or ())[:-1]
        return tuple(Message(message.role, self._filled_template(message.content, labels)) for message in opening)

    def _source_fingerprint(self, **texts: str) -> dict[str, str]:
        parts = super()._source_fingerprint(**texts)
        if self.responses is not None:
            return parts
        if self.messages is not None:
            parts["messages"] = canonical([[message.role, block_text(message.content)] for message in self.messages])
        if self.turns:
            parts["turns"] = canonical([[*map(block_text, self.turns)], self.measure])
        return parts


def templates(data: Part) -> list[Part]:
    """Return the messages and turns in a probe file's plain content."""
    parts = [*(message["content"] for message in data["messages"]), *data["turns"]]
    return [part for part in parts if part.is_text]


def turns_of(answers: Sequence[Answer]) -> list[Turns]:
    """Return the answers of each conversation by turn number, from 1, in the order of their first answers."""
    conversations: dict[tuple[tuple[tuple[str, str], ...], int], Turns] = {}
    for answer in answers:
        key = tuple(sorted(without_turn(answer.labels).items())), answer.trial
        conversations.setdefault(key, {})[int(answer.labels.get(TURN, "1"))] = answer
    return list(conversations.values())


def without_turn(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name != TURN}


def reply_to(answer: Answer, *, calls: bool) -> Reply:
    """Return the text and tool calls of an answer; `calls` says whether the answer may have tool calls."""
    return (reply_in(answer.text or "") if calls else None) or Reply(answer.said, ())


@dataclass(frozen=True)
class ConversationTurns(FollowUps):
    """Turns that follow the first answer of a conversation; `number` is that of a complete conversation's turns.

    A tool call (with `calls`) ends a conversation, because no tool is run.
    """

    possible = True
    are_turns = True

    next_turn: Callable[[Turns], Prompt]
    number: int
    measure: MeasuredTurn
    calls: bool

    def next_prompts(self, answers: Sequence[Answer]) -> list[Prompt]:
        """Return the next prompt of each incomplete conversation whose last answer is a text without tool calls."""
        prompts = []
        for turns in turns_of(answers):
            if max(turns) < self.number:
                reply = reply_to(turns[max(turns)], calls=self.calls)
                if reply.text.strip() and not reply.calls:
                    prompts.append(self.next_turn(turns))
        return prompts

    def measured(self, answers: Sequence[Answer]) -> list[Answer]:
        """Return one answer for each conversation, with the labels of its first prompt.

        Answers of one conversation depend on each other, so that they cannot count as several answers. A conversation
        that reached the measured turn gives the answer of this turn. If the answers of all turns are joined, the last
        turn is the measured turn, and the first missing answer, if there is one, takes the place of the joined answer.
        A conversation that ended before the measured turn gives its last answer. If this answer has no tool call, its
        content is removed and, if it has a text and was not blocked, its status becomes `FAILED`.
        """
        return [self._measured_answer(turns) for turns in turns_of(answers)]

    def _measured_answer(self, turns: Turns) -> Answer:
        labels = without_turn(turns[min(turns)].labels)
        last = self.number if isinstance(self.measure, str) else self.measure
        if last not in turns:
            ended = turns[max(turns)]
            if reply_to(ended, calls=self.calls).calls:
                return replace(ended, labels=labels)
            lost = (ended.text or "").strip() and ended.status is not Status.BLOCKED
            status = Status.FAILED if lost else ended.status
            return replace(ended, labels=labels, status=status, content=None)
        join = self.measure == "all"
        own = [turns[turn] for turn in (range(1, last + 1) if join else [last])]
        missing = next((answer for answer in own if not answer.usable), None)
        if missing is not None or not join:
            return replace(missing or own[0], labels=labels)
        text = "\n".join(str(answer.content) for answer in own)
        truncated = any(answer.truncated for answer in own)
        return replace(own[-1], labels=labels, text=text, content=text, truncated=truncated)


# Probes that measure parts of structured answers: calls of tools, their arguments, and values in JSON.

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
"""JSON Schema of a tool without arguments."""


def _single_value_path(path: str) -> str:
    try:
        single = compiled_path(path).single
    except ValueError as error:
        # Some versions of the library add a place, which is none in the probe file.
        raise ValueError(f"must be a JSONPath: {str(error).partition(', line ')[0]}") from error
    if not single:
        raise ValueError("must lead to one value, such as $.items[0].name: remove wildcards, slices, filters and `..`")
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

    request_keys: ClassVar[tuple[str, ...]] = (*ConversationProbe.request_keys, "tools")

    tools: tuple[Tool, ...] = Field(
        default=(),
        min_length=1,
        description="The tools that the target may call, sent with every request; no tool is run. Leave `tools` out "
        "for an application that has its own tools.",
    )

    @staticmethod
    def _tool_faults(data: Part) -> Iterator[Diagnostic]:
        tools, measured = data["tools"], data["answer"]["tool"]
        names = [tool["name"] for tool in tools.mappings]
        known = [name.text for name in names if name.is_text]
        yield from field_types.repeats(names, "each tool needs its own name", str)
        if "tools" in data and measured.value is None and not field_types.is_recorded(data):
            yield tools.key_fault(
                "no audit measures calls of these tools: name the tool to measure, `answer: {tool: …}`"
            )
        elif known and measured.is_text and measured.text not in known:
            near = suggestion(measured.text, known)
            yield measured.fault(f"{measured.quoted} is not one of the probe's tools{near}")

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
        language, label = super().language, self._structured_answer.label
        return replace(language, decisions=language.decisions.with_label(label)) if label else language

    @cached_property
    def reading(self) -> AnswerReading:
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
        answer = self._structured_answer
        parts = {name: str(value) for name, value in (("tool", answer.tool), ("path", answer.path)) if value}
        parts |= {"label": answer.label} if answer.label else {}
        parts |= {"measure": "thoughts"} if self.measure == "thoughts" else {}
        return parts | ({"tools": self._tools_as_json} if self.tools else {})


# Probes whose answers are free texts.


class FreeTextProbe(Probe):
    """Probe whose answers are free texts; a judge model or a scorer can recognise the refusals among these texts."""

    refusal_settings: RefusalSettings = Field(
        default_factory=RefusalSettings,
        alias="refusals",
        description="How refusals are recognised: {by: judge} asks a judge model. Default: by the patterns of "
        "`language`.",
    )

    @cached_property
    def reading(self) -> AnswerReading:
        return replace(super().reading, refusals=self.refusal_settings)

    @cached_property
    def language(self) -> Language:
        """The language of the answers; without patterns of refusals if a judge model or scorer recognises refusals."""
        language = super().language
        if self.refusal_settings.by == "patterns":
            return language
        return replace(language, refusal_sources=(), refusals_missing=())
