"""Exceptions of the package, and parts of messages: counted nouns, cut lists, texts on one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_fairness.records import Json


# Exceptions of the package.
#
# Every error that a user can cause derives from `FairnessError`. Its message says what happened, where, and what to
# do, and is shown without a traceback.

SHORT_MESSAGE = 160
"""Maximum number of characters of one message in a list of failed requests."""

_ATTEMPTS = re.compile(r" The request was sent \d+ times\.$")


class FairnessError(Exception):
    """Base class of all errors that are shown to the user without a traceback."""


class ProbeError(FairnessError):
    """Error for an invalid probe file; each line of the message is one problem: `path:line:column: message`."""


class TargetError(FairnessError):
    """Error in a target's configuration (missing key, unknown model, missing package); no request can be answered."""


class ModelError(FairnessError):
    """Error of a scoring model that cannot be used (missing package, missing model, labels without names)."""


class RetryReason(Enum):
    """Reason why a failed request may be sent again; it determines how soon and how often the request is repeated."""

    TRANSIENT = auto()
    """The connection broke, the server had an internal error, or the response was malformed."""
    TIMEOUT = auto()
    """No response arrived within the time limit."""
    OVERLOADED = auto()
    """The target rejected the request because of its rate limit or load."""
    UNREACHABLE = auto()
    """No connection was made; the request was never sent."""
    REPHRASED = auto()
    """The target rejected a field of the request; the next attempt omits or renames the field."""


class RequestFailed(FairnessError):
    """Failure of one request; other requests are not affected.

    Args:
        message: complete message for the user.
        retry: reason why another attempt may succeed; `None` if another attempt would fail in the same way.
        retry_after: seconds that the target asks to wait before the next request, or `None`.
        check: settings that the user should check if the target rejects every request in this way; `None` if the
            settings are not the cause.
    """

    def __init__(
        self,
        message: str,
        *,
        retry: RetryReason | None = None,
        retry_after: float | None = None,
        check: str | None = None,
    ) -> None:
        super().__init__(message)
        self.retry = retry
        self.retry_after = retry_after
        self.check = check


class StoreError(FairnessError):
    """Failure to read or write the store of recorded responses."""


class AnswersMissing(FairnessError):
    """Error of an item that lacks answers.

    The reason can be that requests failed, that no response was recorded (`--fairness-replay`), that the maximum number
    of requests was reached, or that the run gave up on the target.
    """


class NotMeasurable(FairnessError):
    """Error of an item that has too few usable answers to be measured.

    Args:
        message: complete message for the user.
        unusable: whether some answers arrived but were not usable; the report then shows these answers.
        permanent: `True` if further answers would not make the item measurable.
    """

    def __init__(self, message: str, *, unusable: bool = False, permanent: bool = False) -> None:
        super().__init__(message)
        self.unusable = unusable
        self.permanent = permanent


class BaselineError(FairnessError):
    """Failure to read, use or write a baseline file.

    Args:
        message: complete message for the user.
        fixed_by_rebaseline: whether a new baseline (`--fairness-rebaseline`) solves the problem.
    """

    def __init__(self, message: str, *, fixed_by_rebaseline: bool = False) -> None:
        super().__init__(message)
        self.fixed_by_rebaseline = fixed_by_rebaseline


class BaselineStale(FairnessError):
    """Error for a stale baseline: this run has other inputs (prompts, settings) than the run that made the baseline.

    Args:
        parts: names of the inputs that differ, such as `list of entities`.
    """

    def __init__(self, parts: Sequence[str]) -> None:
        super().__init__(f"changed since the baseline was made: {', '.join(parts)}")
        self.parts = tuple(parts)


def on_one_line(error: BaseException) -> str:
    """Return the message of an error on one line; the problems of a `ProbeError` are numbered if there are several."""
    problems = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    if isinstance(error, ProbeError) and len(problems) > 1:
        problems = [f"({number}) {problem}" for number, problem in enumerate(problems, start=1)]
    return " ".join(problems)


def short_message(message: str) -> str:
    """Return the first line of a request's error message, without the number of attempts and the final full stop.

    A longer line is cut to `SHORT_MESSAGE` characters.
    """
    line = next(iter(_ATTEMPTS.sub("", message).strip().splitlines()), "").strip().removesuffix(".")
    return line if len(line) <= SHORT_MESSAGE else f"{line[: SHORT_MESSAGE - 1]}…"


# Numbers with their nouns, and lists that are cut after some names, in messages and reports.


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural: `1 request`, `1,200 requests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def significant(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, but with all digits before the point: `8070`, `0.0123`."""
    return f"{value:.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"


def joined(names: Sequence[str], most: int = 8) -> str:
    """Return the first `most` names and the number of the others as a phrase: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# Conversion of texts to a single line, for use in messages.


def identifier(value: Json) -> str | None:
    """Return a name in a server's response on one line of at most 100 characters; `None` if it is empty or no text."""
    return one_line(value, 100) or None if isinstance(value, str) else None


def one_line(value: object, length: int = 200) -> str:
    """Return the text of a value on one line, shortened to `length` characters, without control characters."""
    text = " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())
    return text if len(text) <= length else f"{text[: length - 1]}…"
