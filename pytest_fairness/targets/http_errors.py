"""What can go wrong on the way to a server and back, for every target that is asked over HTTP."""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx2

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.targets.http_client import RedirectedElsewhere
from pytest_fairness.targets.one_line import one_line

BUSY = frozenset({429, 503, 529})
"""Statuses of a server that has too much to do."""
PASSING = frozenset({408, 409, 425, *range(500, 600)}) - BUSY
"""Other statuses after which another try may do."""


@dataclass(frozen=True)
class Faults:
    """Makes errors that name the server and what to do.

    Attributes:
        name: the target, for messages.
        endpoint: its address, as it may be shown.
        where: which settings name the endpoint and what it is sent, for messages.
        hidden: takes what is secret out of a text.
    """

    name: str
    endpoint: str
    where: str
    hidden: Callable[[str], str]

    def late(self, cause: BaseException | None) -> RequestFailed:
        """No answer in time.

        Args:
            cause: what the HTTP client raised.
        """
        return RequestFailed(
            f"{self.name}: no answer from {self.endpoint} in time (ini fairness_timeout).",
            retry=RetryReason.UNREACHABLE if isinstance(cause, httpx2.ConnectTimeout) else RetryReason.TIMEOUT,
        )

    def lost(self, cause: BaseException) -> RequestFailed | TargetError:
        """No connection, or one that broke, or a redirect to another host; `cause` as in `late`."""
        why = self.quoted(str(cause))
        if isinstance(cause, RedirectedElsewhere):
            return TargetError(f"{self.name}: {why}, which is sent nothing. Check {self.where}.")
        if isinstance(cause, httpx2.ConnectError | httpx2.ProxyError):
            return RequestFailed(
                f"{self.name}: no connection to {self.endpoint} ({why}). Is the server up, and {self.where} right?",
                retry=RetryReason.UNREACHABLE,
            )
        return RequestFailed(
            f"{self.name}: {self.endpoint} broke off before its answer was whole ({why}).", retry=RetryReason.TRANSIENT
        )

    def of_status(self, status: int, headers: Mapping[str, str], said: str) -> RequestFailed:
        """A status that says that there is no answer; what concerns all requests is not told apart here."""
        again = headers.get("x-should-retry") != "false"
        retry = RetryReason.OVERLOADED if status in BUSY else RetryReason.TRANSIENT if status in PASSING else None
        return RequestFailed(
            f"{self.name}: HTTP {status} from {self.endpoint}: {self.quoted(said)}",
            retry=retry if again else None,
            retry_after=retry_after(headers),
        )

    def quoted(self, text: str, length: int = 200) -> str:
        """What a server said, on one line and without what is secret."""
        return one_line(self.hidden(text), length)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds for which a server asks to be left alone: `Retry-After`, a number or a date, or `Retry-After-Ms`."""
    milliseconds, written = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else float(written or "")
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(written or "").timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
