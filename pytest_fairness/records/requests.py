"""Requests to targets, their responses, tool calls, and the JSON values in all of them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self

from pydantic_core import PydanticSerializationError, from_json, to_json

# Requests to targets, and their responses.

SAMPLING_PARAMETERS = ("temperature", "top_p", "max_tokens", "seed")
"""Names of the sampling parameters that `Sampling` has as attributes."""

AnswerFormat = Literal["text", "list", "titles", "json", "structured", "calls", "number", "likelihood", "embedding"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters of a request; a parameter that is `None` is not sent.

    Attributes:
        extra: further fields of the request's body, as a JSON object with sorted keys; empty without further fields.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    extra: str = ""

    @property
    def extra_fields(self) -> dict[str, Json]:
        """Return the further fields of the body, by name."""
        return json.loads(self.extra) if self.extra else {}

    def to_json(self) -> dict[str, Json]:
        """Return the parameters that are set, and the further fields, by name, as they are sent."""
        set_here = {name: getattr(self, name) for name in SAMPLING_PARAMETERS}
        return {name: value for name, value in set_here.items() if value is not None} | self.extra_fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Json]) -> Self:
        """Return the sampling parameters for which `to_json` returned these fields."""
        parameters = {name: fields.get(name) for name in SAMPLING_PARAMETERS}
        extra = {name: value for name, value in fields.items() if name not in SAMPLING_PARAMETERS}
        return cls(**parameters, extra=json.dumps(extra, sort_keys=True) if extra else "")


class Message(NamedTuple):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str

    def to_json(self) -> dict[str, str]:
        """Return the message as chat APIs expect it."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a target. Equal requests are sent, paid for and recorded only once.

    Attributes:
        prompt: the user message to answer; for a likelihood, the text before `continuation`; for an embedding, the text
            to embed.
        system: system prompt.
        sampling: sampling parameters; if the probe has a seed, each request has its own, see `with_own_seed`.
        trial: number of the trial, from 0; repetitions of a prompt, and equal prompts of several records, have numbers
            above all trials.
        answer_format: `likelihood` asks for the log-probabilities of the tokens of `continuation`, `embedding` for the
            vector of `prompt`, `json` and `structured` for JSON, `calls` for a message that may have tool calls; all
            other formats ask for text.
        continuation: text whose likelihood is requested; `None` for other formats.
        history: messages before the prompt, without the system prompt; empty if the prompt begins the conversation.
        tools: definitions of the tools that the target may call, as JSON in OpenAI's form; empty without tools.
    """

    prompt: str
    system: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    trial: int = 0
    answer_format: AnswerFormat = "text"
    continuation: str | None = None
    history: tuple[Message, ...] = ()
    tools: str = ""

    @property
    def tool_definitions(self) -> list[dict[str, Json]] | None:
        """Return the definitions of the tools, in OpenAI's form; `None` without tools."""
        return json.loads(self.tools) if self.tools else None

    @property
    def conversation(self) -> tuple[Message, ...]:
        """Return the history and the prompt as messages, without the system prompt."""
        return (*self.history, Message("user", self.prompt))

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return all messages; the system prompt, if there is one, comes first."""
        return self.conversation if self.system is None else (Message("system", self.system), *self.conversation)

    @property
    def shown_prompt(self) -> str:
        """Return the prompt as reports show it: with its history, if there is one."""
        if not self.history:
            return self.prompt
        return "\n".join(f"{message.role}: {message.content}" for message in self.conversation)

    def with_own_seed(self) -> Self:
        """Return the request with its own seed, derived from the probe's seed and the request's texts and trial number.

        If the probe has no seed, the request is returned unchanged.

        With one seed for all requests, a server would sample the answers to two prompts with the same random numbers.
        Tests of differences assume that the answers are independent.
        """
        if self.sampling.seed is None:
            return self
        return replace(self, sampling=replace(self.sampling, seed=self._derived_seed(self.sampling.seed)))

    @property
    def seed(self) -> int:
        """Return the seed of the sampling parameters; if it is `None`, a seed for targets that require a seed.

        That seed is derived from the request's texts and trial, and is in 0..2**31 - 1.
        """
        return self._derived_seed(0) if self.sampling.seed is None else self.sampling.seed

    def _derived_seed(self, seed: int) -> int:
        parts = [str(seed), str(self.trial), self.system or "", self.prompt, self.continuation or ""]
        parts += [text for message in self.history for text in message]
        asked = "\0".join([*parts, self.tools] if self.tools else parts)
        digest = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:4], "big") >> 1


_BLOCKS = frozenset(
    {
        *("blocked", "blocklist", "imagesafety", "prohibitedcontent", "recitation", "safety", "spii"),  # Gemini
        *(
            "contentfilter",
            "contentfiltered",
            "contentpolicyviolation",
            "responsibleaipolicyviolation",
        ),  # Azure, OpenAI
        *("moderationblocked", "refusal"),  # OpenAI, Anthropic
        *("guardrailintervened", "errortoxic", "sensitive"),  # Bedrock, Cohere, Zhipu
        *("datainspectionfailed", "contentblocked", "contentmoderation"),  # Alibaba, gateways
    }
)
"""Finish reasons and error codes of providers that refuse or withhold an answer, in lower case, letters only."""


@lru_cache(maxsize=256)
def is_block(reason: str | None) -> bool:
    """Return whether a finish reason, or the code of an error, says that the provider refuses or withholds the answer.

    Letter case, marks and an explanation after a colon do not matter: `SAFETY`, `content_filter: RECITATION`.
    """
    return "".join(filter(str.isalpha, (reason or "").partition(":")[0])).casefold() in _BLOCKS


TOO_LONG = "too_long"
"""Finish reason of a response longer than `RunSettings.max_answer_bytes`; the text of the response is not kept."""


@dataclass(frozen=True, slots=True)
class Response:
    """Recorded response to one request.

    Attributes:
        text: text of the target; may be empty. For a likelihood, it is JSON with `tokens` (the tokens of the
            continuation) and `log_probabilities` (natural logarithm for each token, `null` if unknown). For an
            embedding, it is JSON with `dimensions` and `float32` (the vector as little-endian 32-bit numbers in
            base64).
        finish_reason: reason that the target reports, such as `stop`, `length` (cut off by `max_tokens`), `refusal` or
            `content_filter`; `TOO_LONG` for a response over the size limit; `None` if no reason is reported.
        prompt_tokens, completion_tokens: numbers of tokens that the target reports; `None` if it reports none.
        created: time of arrival, in seconds since the epoch.
        model, fingerprint: `model` and `system_fingerprint` that the server reports; `None` if it does not report them.
        tool_calls: tool calls as a JSON list of `{"name": …, "arguments": {…}}`; `None` without tool calls.
    """

    text: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    created: float = 0.0
    model: str | None = None
    fingerprint: str | None = None
    tool_calls: str | None = None

    @property
    def blocked(self) -> bool:
        """Return whether the target reports that the answer was refused or withheld; see `is_block`."""
        return is_block(self.finish_reason)

    @property
    def served(self) -> str | None:
        """Return the reported name of the model that answered, such as `gpt-x-2026-05 (fp_44709d)`, or `None`."""
        if self.fingerprint is None:
            return self.model
        return f"{self.model or 'a model'} ({self.fingerprint})"


def with_thoughts(text: str, thoughts: str) -> str:
    """Return the text of a response with the model's thoughts before it, between the marks of many models.

    In this form, thoughts that an API returns apart from the text are recorded and stored.
    """
    return f"<think>{thoughts}</think>{text}" if thoughts.strip() else text


def thoughts_of(message: Json) -> str:
    """Return the thoughts in a message of an API: its `reasoning_content` or `reasoning`, or parts of its content.

    Args:
        message: message of a chat completion, or a message with a list of content blocks; any other JSON has no
            thoughts.
    """
    if not isinstance(message, dict):
        return ""
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str):
            return str(message[key])
    content = message.get("content")
    blocks = [part for part in content if is_thought(part)] if isinstance(content, list) else []
    inside = [block.get("thinking", block.get("text")) for block in blocks]
    parts = [part for found in inside for part in (found if isinstance(found, list) else [found])]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def is_thought(part: Json) -> bool:
    """Return whether a part of a message's content holds thoughts."""
    return isinstance(part, dict) and part.get("type") in ("thinking", "reasoning")


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """Number that a prompt asks for.

    Attributes:
        min, max: smallest and largest possible number; another number makes an answer unreadable.
        unit: unit of the number, such as `points` or `USD per year`; empty for a number without a unit.
        name: the probe's own name for the number, such as `salary`: its key in JSON, or the word before it in prose.
            Empty if there is none; general names, such as `score`, are recognised in all answers.
        ranges: whether a range ("80 to 90") is unreadable or stands for its middle.
        decimal: decimal mark of the answers; `None` to recognise the mark in each number.
    """

    min: float
    max: float
    unit: str = ""
    name: str = ""
    ranges: Literal["unreadable", "middle"] = "unreadable"
    decimal: Literal[".", ","] | None = None


CALLED, NOT_CALLED = "called", "not called"
"""Choices of a decision that a model makes by calling a tool, or by not calling it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Part of an answer that is measured.

    Attributes:
        tool: name of the tool whose call is measured; `None` if the answer itself is JSON.
        path: JSONPath of one value in the arguments of the call, or in the answer; `None` to measure only whether the
            tool is called (`CALLED` or `NOT_CALLED`).
        format: format in which the value is parsed.
        thoughts: whether the model's thoughts are measured in place of its answer.
    """

    tool: str | None
    path: str | None
    format: AnswerFormat = "text"
    thoughts: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """Request with its labels in the probe.

    Attributes:
        request: the request.
        labels: names and values that identify the prompt, such as the value of each axis. In a probe with several
            prompts, the label `prompt` is the prompt's number, from `"1"`.
        trial: number of the trial among the requests with the same labels, from 0.
        choices: valid answers, if the probe limits them; else empty.
        number: the number that the prompt asks for; `None` if it asks for no number.
        selection: the part of the answer that is measured; `None` for the whole answer.
    """

    request: Request
    labels: Mapping[str, str]
    trial: int
    choices: tuple[str, ...] = ()
    number: NumberFormat | None = None
    selection: Selection | None = None


# Tool calls of a model, the form in which they are stored, and functions that read them from messages of APIs.

_MESSAGE_KEYS = frozenset(
    {
        *("content", "tool_calls", "role", "name", "id", "type", "refusal", "annotations", "audio", "parsed"),  # OpenAI
        *("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks", "images", "prefix"),
        *(
            "model",
            "stop_reason",
            "stop_sequence",
            "stop_details",
            "usage",
            "container",
            "context_management",
        ),  # Anthropic
        *("additional_kwargs", "response_metadata", "usage_metadata", "invalid_tool_calls", "example"),  # LangChain
        "provider_specific_fields",  # LiteLLM
    }
)
"""Keys of messages of APIs and client libraries."""


Json = Any
"""Any value that `json.dumps` accepts."""


class ToolCall(NamedTuple):
    """Call of a tool.

    Attributes:
        name: name of the tool.
        arguments: the arguments as a JSON object; if the model wrote no valid JSON object, the text that it wrote.
    """

    name: str
    arguments: Json

    @property
    def arguments_text(self) -> str:
        """Return the arguments as JSON text; invalid arguments are the text that the model wrote."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


class Reply(NamedTuple):
    """A model's message: its text, which may be empty, and its tool calls."""

    text: str
    calls: tuple[ToolCall, ...]

    @property
    def calls_as_json(self) -> str:
        """Return the tool calls as JSON, the form of `Response.tool_calls`."""
        return json.dumps([call._asdict() for call in self.calls], ensure_ascii=False)

    @property
    def as_json(self) -> str:
        """Return the message as JSON, from which `reply_in` makes an equal reply."""
        calls = [call._asdict() for call in self.calls]
        return json.dumps({"content": self.text, "tool_calls": calls}, ensure_ascii=False)

    @property
    def shown(self) -> str:
        """Return the message as reports show it: its text, and a line for each tool call."""
        calls = [f"tool call: {call.name} {call.arguments_text}" for call in self.calls]
        return "\n".join([*([self.text] if self.text else []), *calls])


def reply_of(message: Json) -> Reply:
    """Return the text and the tool calls of a model's message.

    Args:
        message: JSON data in one of two forms. OpenAI's API: an object with `content`, `tool_calls` or both; tool calls
            may also be objects with `name` and `arguments`. Anthropic's API: an object whose `content` is a list of
            blocks, or this list.

    Raises:
        ValueError: `message` has another form. The error's text has no subject; the caller adds one (`the answer`).
    """
    if isinstance(message, list):
        message = {"content": message}
    if not isinstance(message, dict) or message.keys().isdisjoint(("content", "tool_calls")):
        keys = f" (keys found: {', '.join(map(str, message))})" if isinstance(message, dict) and message else ""
        raise ValueError(f"is not an object with `content` or `tool_calls`{keys}")
    content, calls = message.get("content"), message.get("tool_calls") or []
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if not isinstance(calls, list):
        raise ValueError("has `tool_calls` that are not a list")  # noqa: TRY004 - the content of a document is wrong
    used = [*calls, *(block for block in blocks if block.get("type") == "tool_use")]
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str) and not is_thought(block)]
    text = content if isinstance(content, str) else "".join(texts)
    return Reply(with_thoughts(text, thoughts_of(message)), tuple(map(_call, used)))


def unknown_keys(message: Json) -> list[str]:
    """Return the keys of an object that no message has; keys without a value are left out.

    Text or calls under such a key would be overlooked.
    """
    given = message if isinstance(message, dict) else {}
    return [str(key) for key, value in given.items() if key not in _MESSAGE_KEYS and value not in (None, "", [], {})]


def reply_in(text: str) -> Reply | None:
    """Return the reply in JSON text; `None` if the text is no JSON, or holds no message of a model."""
    try:
        return reply_of(json.loads(text))
    except (ValueError, RecursionError):
        return None


def calls_in(text: str | None) -> tuple[ToolCall, ...]:
    """Return the tool calls in JSON that `Reply.calls_as_json` returned; an empty tuple for `None`."""
    return tuple(ToolCall(call["name"], call["arguments"]) for call in json.loads(text or "[]"))


def _call(written: Json) -> ToolCall:
    called = written.get("function", written) if isinstance(written, dict) else None
    name = called.get("name") if isinstance(called, dict) else None
    if not isinstance(called, dict) or not isinstance(name, str):
        raise ValueError("has a tool call without the name of a tool")  # noqa: TRY004 - as above
    return ToolCall(name, _arguments(called.get("arguments", called.get("input", called.get("args")))))


def _arguments(written: Json) -> Json:
    """Return the arguments as a JSON object, or as text if they are no object."""
    if written is None or (isinstance(written, str) and not written.strip()):
        return {}  # some servers write no text for a call without arguments
    if isinstance(written, str):
        try:
            parsed = json.loads(written)
        except (ValueError, RecursionError):
            return written
        return parsed if isinstance(parsed, dict) else written
    return written if isinstance(written, dict) else json.dumps(written, ensure_ascii=False)


# Type of JSON values, and functions for JSON values.

MAX_LINE = 32 * 1024**2
"""Maximum number of bytes of a line in a file of answers or data. The longest answer that is accepted by default fits
into a line even if every character is escaped."""

_UNCHANGED = frozenset({str, int, bool, type(None)})


def json_text(value: Json) -> str:
    """Return the value as JSON text, which may contain `NaN` and `Infinity`; four times as fast as `json.dumps`."""
    try:
        return to_json(value, inf_nan_mode="constants").decode()
    except PydanticSerializationError:  # a text with half of a surrogate pair, which UTF-8 cannot hold
        return json.dumps(value)


def json_value(text: str) -> Json:
    """Return the value of a JSON text that `json_text` returned; twice as fast as `json.loads`.

    Raises:
        json.JSONDecodeError: the text is not JSON.
    """
    try:
        return from_json(text)
    except ValueError:  # an escaped half of a surrogate pair, or an error that `json` describes in more detail
        return json.loads(text)


def fields_of(record: Any) -> dict[str, Json]:
    """Return the fields of a dataclass by name; unlike `dataclasses.asdict`, do not copy the values."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def without_nonfinite(value: Json) -> Json:
    """Return the value as JSON can hold it: `None` for NaN and infinities, texts as keys, and lists for tuples."""
    # Texts, whole numbers and dictionaries are most of a report. They are recognised without a further call, and
    # without `isinstance` of an abstract class, which takes longer.
    if type(value) in _UNCHANGED:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if type(value) is dict or isinstance(value, Mapping):
        return {str(key): item if type(item) in _UNCHANGED else without_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [item if type(item) in _UNCHANGED else without_nonfinite(item) for item in value]
    return value


# JSONPaths, which select parts of JSON documents (RFC 9535).


class JsonPath:
    """Compiled JSONPath.

    Args:
        text: the path, such as `$.choices[0].message.content`.

    Attributes:
        single: whether the path can match only one value: it has no wildcard, slice, filter or `..`.

    Raises:
        ValueError: the text is not one JSONPath; the message says why, without the path.
    """

    def __init__(self, text: str) -> None:
        import jsonpath  # the import takes 0.1 s

        if not text.startswith("$"):
            raise ValueError("it does not begin with $")
        try:
            path = jsonpath.compile(text)
        except jsonpath.JSONPathError as error:
            raise ValueError(str(error).splitlines()[0]) from error
        if not isinstance(path, jsonpath.JSONPath):
            raise ValueError("it contains several JSONPaths; write only one")  # noqa: TRY004 - the text is wrong
        self._path, self._errors = path, (jsonpath.JSONPathError, RecursionError)
        self.single = path.singular_query()

    def find(self, document: Json) -> list[Json]:
        """Return the values that the path matches; an empty list if it matches none.

        Raises:
            ValueError: the document is nested too deeply.
        """
        try:
            return list(self._path.findall(document))
        except self._errors as error:
            raise ValueError("nested too deeply") from error


compiled_path = lru_cache(JsonPath)
"""Function that returns a compiled JSONPath; equal paths are compiled once."""
