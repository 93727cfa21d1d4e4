"""Tool calls of a model, the form in which they are stored, and functions that read them from messages of APIs."""

from __future__ import annotations

import json
from typing import NamedTuple

from pytest_fairness.records.plain_json import Json
from pytest_fairness.records.requests import is_thought, thoughts_of, with_thoughts

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
