"""Code that all targets on web servers share: errors and words of servers, options, headers, secrets, addresses."""

from __future__ import annotations

import email.utils
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError, one_line
from pytest_fairness.records import Json, Response, is_block
from pytest_fairness.targets.secrets import REFERENCE

# Errors of servers. Providers also say in the body of a response, or in its finish reason, that an answer was withheld,
# cut off or broken off; all targets recognise these words with these functions.

OVERLOADED = frozenset({429, 503, 529})
"""HTTP statuses of a server that limits the rate of requests or is overloaded."""
TRANSIENT = frozenset({408, 409, 425, *range(500, 600)}) - OVERLOADED
"""Other HTTP statuses after which another attempt may succeed."""

LONGEST_PAUSE = 86_400.0
"""Longest pause in seconds for which a server can plausibly ask; an hour or more ends the run in any case."""

_LENGTH = frozenset({"length", "max_tokens", "model_length"})
"""Finish reasons of answers that `max_tokens` has cut off: `length` of OpenAI, the others of compatible servers."""
_BROKEN_OFF = frozenset({"abort", "error", "insufficient_system_resource"})
"""Finish reasons of answers that the server broke off: of OpenRouter, DeepSeek and vLLM, among others."""
_BLOCKING_STATUSES = frozenset({200, 400, 403, 422, 451})
"""HTTP statuses of responses that may say that the answer was withheld."""
_FINISH_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "blockReason", "block_reason")
_CODE_KEYS = ("code", "type")
_MESSAGE_KEYS = ("message", "error", "detail")
_BLOCK_MESSAGE = re.compile(
    r"content (?:filter|management polic)|content exists risk|requires moderation|safety system"
    r"|violat\w+ (?:\w+ )?(?:usage|content) (?:polic|guideline)"
    r"|\b(?:input|prompt|request|content|output)s? (?:was|were|has been|have been|is|are) (?:flagged|blocked)",
    re.IGNORECASE,
)
"""Words in the error message of a provider that withholds an answer, and gives no code."""


def finish_reason(written: Json) -> str | None:
    """Return a finish reason as `Response` has it: `length` for an answer that was cut off at `max_tokens`."""
    if not isinstance(written, str):
        return None
    return "length" if written.casefold() in _LENGTH else written


def finish_reason_in(body: Json) -> str | None:
    """Return the finish reason in the body of a service, if it says that the answer was withheld or cut off.

    The reason is the value of one of the keys of OpenAI's, Anthropic's and Gemini's APIs, at any depth.
    """
    reasons = (finish_reason(value) for key, value in _fields(body) if key in _FINISH_KEYS)
    return next((reason for reason in reasons if reason == "length" or is_block(reason)), None)


def is_blocked(error: Json, status: int = 400) -> bool:
    """Return whether a body or its error says that the provider refuses the request or withholds the answer."""
    if status not in _BLOCKING_STATUSES:
        return False
    for key, value in _fields(error):
        if isinstance(value, str) and (
            (key in _CODE_KEYS + _FINISH_KEYS and is_block(value))
            or (key in _MESSAGE_KEYS and _BLOCK_MESSAGE.search(value) is not None)
        ):
            return True
        if key == "reasons" and value and status == 403:  # a gateway's moderation
            return True
    return False


BLOCKED = Response("", finish_reason="content_filter")
"""Response to a request whose answer the provider withholds."""


def _fields(body: Json, depth: int = 8) -> Iterator[tuple[str, Json]]:
    if depth and isinstance(body, dict):
        yield from body.items()
    if depth and isinstance(body, dict | list):
        for part in body.values() if isinstance(body, dict) else body:
            yield from _fields(part, depth - 1)


class Reply(NamedTuple):
    """Response of a server, with its decompressed body.

    Attributes:
        body: the body; empty if it is `too_long`, and cut off at `MAX_ERROR_BYTES` for an error.
        too_long: whether the response is successful, but its body is over the connection's limit.
        moved_to: address to which the server redirects the request, without secrets; empty if it does not.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    too_long: bool = False
    moved_to: str = ""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class StatusError(Exception):
    """Error for a response with an HTTP status other than success.

    Attributes:
        said: the server's message; the whole body if it contains no message.
        param: the field of the request that the server names as the cause; `None` if it names none.
        blocked: whether the provider refuses this request, or withholds its answer; see `is_blocked`.
    """

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"HTTP {reply.status}")
        self.status, self.headers, self.text = reply.status, reply.headers, reply.text
        try:
            body = json.loads(reply.body)
        except (ValueError, RecursionError):
            body = None
        error = body.get("error") if isinstance(body, dict) else None
        parts = [part for part in (error, body) if isinstance(part, dict)]
        self.said = next((part["message"] for part in parts if isinstance(part.get("message"), str)), self.text)
        self.code: Json = next((part["code"] for part in parts if "code" in part), None)
        self.param: Json = next((part["param"] for part in parts if "param" in part), None)
        self.blocked = is_blocked(body, self.status)


@dataclass(frozen=True)
class ServerErrors:
    """Errors of requests to one server; messages say what happened, at which server, and what to check.

    Attributes:
        endpoint: the server's address, without secrets.
        where: names of the settings for the address and for the key; the key comes last.
        redact: function that removes secrets from a text.
    """

    name: str
    endpoint: str
    where: str
    redact: Callable[[str], str]
    key_missing: bool = False

    def no_connection_in_time(self) -> RequestFailed:
        return RequestFailed(
            f"{self.name}: no connection to {self.endpoint} within the time limit. Check that the server is running, "
            f"and {self.where}.",
            retry=RetryReason.UNREACHABLE,
        )

    def timed_out(self) -> RequestFailed:
        return RequestFailed(
            f"{self.name}: {self.endpoint} did not answer in time. If the server is slow, raise the ini "
            "fairness_timeout.",
            retry=RetryReason.TIMEOUT,
        )

    def unreachable(self, why: str) -> RequestFailed:
        return RequestFailed(
            f"{self.name}: no connection to {self.endpoint} ({self._reason(why)}). Check that the server is running, "
            f"and {self.where}.",
            retry=RetryReason.UNREACHABLE,
        )

    def incomplete(self, why: str) -> RequestFailed:
        return RequestFailed(
            f"{self.name}: {self.endpoint} sent no complete response ({self._reason(why)}).",
            retry=RetryReason.TRANSIENT,
        )

    def untrusted(self, why: str) -> TargetError:
        return TargetError(
            f"{self.name}: the certificate of {self.endpoint} is not trusted ({self._reason(why)}). If the server or "
            "your proxy uses a certificate authority of your organisation, set the environment variable SSL_CERT_FILE "
            "to the file with its certificate (PEM)."
        )

    def redirected(self, why: str) -> TargetError:
        return TargetError(f"{self.name}: {self._reason(why)}; nothing was sent there. Check {self.where}.")

    def redirect_loop(self, why: str) -> RequestFailed:
        return RequestFailed(f"{self.name}: {self.endpoint} redirects in a loop ({why}).", check=self.where)

    def for_status(self, status: int, headers: Mapping[str, str], said: str, check: str = "") -> RequestFailed:
        """Return the error for an HTTP status that may be due to this request alone.

        `check` says what to check if every request gets the status; by default the model's name, endpoint and key.
        """
        retry = None
        key = " (no key is set)" if self.key_missing else ""
        if headers.get("x-should-retry") != "false":
            retry = RetryReason.OVERLOADED if status in OVERLOADED else None
            retry = RetryReason.TRANSIENT if status in TRANSIENT else retry
        return RequestFailed(
            f"{self.name}: HTTP {status} from {self.endpoint}: {self.quoted(said)}",
            retry=retry,
            retry_after=retry_after(headers),
            check=(check or f"the model's name, {self.where}{key}") if retry is None else None,
        )

    def broken_off(self, reason: Json, error: Json = None) -> RequestFailed | None:
        """Return the error for an answer that the server broke off, by its finish reason or the error beside it."""
        if not error and not (isinstance(reason, str) and reason.casefold() in _BROKEN_OFF):
            return None
        said = error.get("message") if isinstance(error, dict) else error
        why = f"finish_reason {reason!r}" + (f": {said}" if said else "")
        return RequestFailed(
            f"{self.name}: {self.endpoint} broke off the answer ({self.quoted(why)}).", retry=RetryReason.TRANSIENT
        )

    def quoted(self, text: str, length: int = 200) -> str:
        """Return a server's message on one line, shortened and without secrets."""
        return one_line(self.redact(text), length)

    def _reason(self, why: str) -> str:
        return self.quoted(why.replace(" ssl:default", ""))  # aiohttp adds this to http:// addresses, too


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the pause in seconds that `Retry-After-Ms` or `Retry-After` demands; `None` without a plausible header.

    A negative pause, or one of more than `LONGEST_PAUSE`, such as a date of another century, is a fault of the server.
    """
    milliseconds, written = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else float(written or "")
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(written or "").timestamp() - time.time()
        except (ValueError, OverflowError, OSError):
            return None
    return seconds if 0 <= seconds <= LONGEST_PAUSE else None


# Options that follow the name of a target behind an API: its own address, and the variable of its key.

BASE_URL, API_KEY_ENV = "base_url", "api_key_env"
"""Names of the options: the address of the API, and the environment variable of the key."""
OPTIONS = (BASE_URL, API_KEY_ENV)


def parse_target_options(prefix: str, text: str) -> tuple[str, Mapping[str, str]]:
    """Return the model, and the values of the options by name, of `MODEL [NAME=VALUE …]`.

    Raises:
        TargetError: an option is unknown, has no valid value or occurs twice.
    """
    words = text.split()
    places = [at for at, word in enumerate(words) if "=" in word and (at > 0 or word.partition("=")[0] in OPTIONS)]
    end = places[0] if places else len(words)
    target = f"{prefix}:{' '.join(words[:end])}"
    options: dict[str, str] = {}
    for word in words[end:]:
        name, _, value = word.partition("=")
        if name not in OPTIONS:
            raise TargetError(
                f"unknown option {name!r} after the target {target} (--fairness-target). Known options: "
                f"{BASE_URL}=ADDRESS and {API_KEY_ENV}=VARIABLE."
            )
        if not value:
            raise TargetError(f"the option {name}= after the target {target} has no value; write {name}=VALUE.")
        if name in options:
            raise TargetError(f"the option {name}= occurs twice after the target {target}; remove one of the two.")
        options[name] = value
    if not is_web_address(options.get(BASE_URL, "http://localhost")):
        raise TargetError(
            f"{target}: the value of {BASE_URL}=… is not an address; write it like http://localhost:8000/v1."
        )
    variable = options.get(API_KEY_ENV, API_KEY_ENV)
    if not (variable.isascii() and variable.isidentifier()):  # perhaps the key itself: do not show it
        raise TargetError(
            f"{target}: the value of {API_KEY_ENV}=… is not the name of an environment variable; write the name of the "
            f"variable that holds the key, such as {API_KEY_ENV}=OTHER_API_KEY."
        )
    return " ".join(words[:end]), options


# HTTP headers that users set, and references `${NAME}` to environment variables in them.

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*(.*)")


class References:
    """Values of environment variables that take the place of references `${NAME}`; those used are in `secrets`."""

    def __init__(self, target: str) -> None:
        self.secrets: dict[str, str] = {}
        self._target = target

    def filled(self, text: str, where: str, encode: Callable[[str], str] = str) -> str:
        """Replace the references in a text by encoded values; raise `TargetError` for a variable that is not set.

        `where` is the setting that contains the text, for messages.
        """
        return REFERENCE.sub(lambda match: encode(self._value(match[1], where)), text)

    def _value(self, name: str, where: str) -> str:
        value = os.environ.get(name, "").strip()
        if not value:
            raise TargetError(
                f"{self._target}: {where} names the environment variable {name}, which is not set. Set the variable."
            )
        self.secrets[name] = value
        return value


class Headers:
    """Headers that a setting adds to every request, as lines `Name: value`, whose values may refer to `${NAME}`.

    Raises:
        TargetError: a line is not of the form `Name: value`.
    """

    def __init__(self, lines: Iterable[str], setting: str, target: str) -> None:
        self._setting, self._target = setting, target
        self._written = [self._parsed(line) for line in lines]

    def __bool__(self) -> bool:
        return bool(self._written)

    def filled(self, references: References) -> dict[str, str]:
        """Return the headers with the values of environment variables.

        Raises:
            TargetError: a variable is not set, or a header has characters that cannot be sent.
        """
        headers = {name: references.filled(value, self._setting) for name, value in self._written}
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                raise TargetError(
                    f"{self._target}: the header {name} has characters that cannot be sent, as they are not printable "
                    "ASCII. Copy its value again."
                )
        return headers

    def _parsed(self, line: str) -> tuple[str, str]:
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            # The line is left out, because it may contain a key.
            raise TargetError(
                f"{self._target}: a line of {self._setting} is not of the form `Name: value`. Correct it."
            )
        return match[1], match[2].strip()


# API keys in environment variables.


def key_of(target: str, variable: str) -> str:
    """Return the key in an environment variable; an empty text if the variable is not set.

    Raises:
        TargetError: the key has characters that cannot be sent in a header.
    """
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise TargetError(
            f"{target}: the key in the environment variable {variable} has characters that cannot be sent, as they are "
            "not printable ASCII. Copy the key again."
        )
    return key


# Functions that check addresses of servers, and remove secrets from addresses.

_ADDRESS = re.compile(r"(https?://)(\S+)")


def public_url(url: str) -> str:
    """Return the address without user, password, query and final slash, so that it is safe to show and record."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def is_web_address(url: str) -> bool:
    """Return whether this is an `http` or `https` address with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def public_address(text: str) -> str:
    """Return a text, such as the name of a target, without the secrets in the web addresses that it contains.

    The user, the password and the values in the query are removed; references to environment variables stay.
    """
    return _ADDRESS.sub(_without_secrets, text)


def _without_secrets(found: re.Match[str]) -> str:
    place, mark, query = found[2].partition("?")
    host, slash, path = place.partition("/")
    pairs = [pair.partition("=") for pair in query.partition("#")[0].split("&")]
    kept = "&".join(
        f"{key}={value if REFERENCE.fullmatch(value) else '…'}" if equals else "…" for key, equals, value in pairs
    )
    return f"{found[1]}{host.rpartition('@')[2]}{slash}{path}{mark}{kept if mark else ''}"
