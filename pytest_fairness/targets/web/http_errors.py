"""Errors of targets that are asked over HTTP; messages say what happened, at which server, and what to check.

Providers also say in the body of a response, or in its finish reason, that an answer was withheld, cut off or broken
off. All targets recognise these words with the functions of this module.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Json, Response, is_block
from pytest_fairness.targets.one_line import one_line
from pytest_fairness.targets.web.aiohttp_transport import UntrustedCertificate
from pytest_fairness.targets.web.http_client import RedirectedElsewhere
from pytest_fairness.targets.web.http_library import httpx

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
    """Return whether an error says that the provider refuses this request or withholds its answer.

    Args:
        error: body of a response, or the error in it.
        status: HTTP status of the response.
    """
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


def blocked_response() -> Response:
    """Return the response to a request whose answer the provider withholds; it has no text."""
    return Response("", finish_reason="content_filter")


def _fields(body: Json, depth: int = 8) -> Iterator[tuple[str, Json]]:
    """Yield the keys and values of all objects in JSON, down to a depth."""
    if depth and isinstance(body, dict):
        yield from body.items()
    if depth and isinstance(body, dict | list):
        for part in body.values() if isinstance(body, dict) else body:
            yield from _fields(part, depth - 1)


@dataclass(frozen=True)
class HttpErrors:
    """Factory of errors for one server.

    Attributes:
        name: the target's name.
        endpoint: the server's address, without secrets.
        where: names of the settings for the address and for the key; the key comes last.
        redact: function that removes secrets from a text.
        key_missing: whether no key is set.
    """

    name: str
    endpoint: str
    where: str
    redact: Callable[[str], str]
    key_missing: bool = False

    def timed_out(self, cause: BaseException | None) -> RequestFailed:
        """Return the error for a request that timed out; `cause` is the HTTP client's exception, or `None`."""
        if isinstance(cause, httpx.ConnectTimeout):
            return RequestFailed(
                f"{self.name}: no connection to {self.endpoint} within the time limit. Check that the server is "
                f"running, and {self.where}.",
                retry=RetryReason.UNREACHABLE,
            )
        return RequestFailed(
            f"{self.name}: {self.endpoint} did not answer in time. If the server is slow, raise the ini "
            "fairness_timeout.",
            retry=RetryReason.TIMEOUT,
        )

    def disconnected(self, cause: BaseException) -> RequestFailed | TargetError:
        """Return the error for a failed or broken connection, an untrusted certificate, or a redirect to another host.

        `cause` is the exception of the HTTP client.
        """
        why = self.quoted(str(cause).replace(" ssl:default", ""))  # aiohttp adds this to http:// addresses, too
        if isinstance(cause, RedirectedElsewhere):
            return TargetError(f"{self.name}: {why}; nothing was sent there. Check {self.where}.")
        if isinstance(cause, UntrustedCertificate):
            return TargetError(
                f"{self.name}: the certificate of {self.endpoint} is not trusted ({why}). If the server or your proxy "
                "uses a certificate authority of your organisation, set the environment variable SSL_CERT_FILE to the "
                "file with its certificate (PEM)."
            )
        if isinstance(cause, httpx.ConnectError | httpx.ProxyError):
            return RequestFailed(
                f"{self.name}: no connection to {self.endpoint} ({why}). Check that the server is running, and "
                f"{self.where}.",
                retry=RetryReason.UNREACHABLE,
            )
        if isinstance(cause, httpx.TooManyRedirects):
            return RequestFailed(f"{self.name}: {self.endpoint} redirects in a loop ({why}).", check=self.where)
        return RequestFailed(
            f"{self.name}: {self.endpoint} sent no complete response ({why}).",
            retry=RetryReason.TRANSIENT,
        )

    def for_status(self, status: int, headers: Mapping[str, str], said: str, check: str = "") -> RequestFailed:
        """Return the error for an HTTP status that may be due to this request alone.

        Args:
            headers: headers of the response.
            said: message of the server.
            check: what to check if every request gets the status; by default the model's name, endpoint and key.
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
        """Return the error for an answer that the server broke off; `None` for any other answer.

        Args:
            reason: finish reason of the answer.
            error: error that the server gives beside the answer, or `None`.
        """
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
