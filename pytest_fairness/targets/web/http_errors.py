"""Errors of targets that are asked over HTTP; messages say what happened, at which server, and what to check."""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.targets.one_line import one_line
from pytest_fairness.targets.web.aiohttp_transport import UntrustedCertificate
from pytest_fairness.targets.web.http_client import RedirectedElsewhere
from pytest_fairness.targets.web.http_library import httpx

OVERLOADED = frozenset({429, 503, 529})
"""HTTP statuses of a server that limits the rate of requests or is overloaded."""
TRANSIENT = frozenset({408, 409, 425, *range(500, 600)}) - OVERLOADED
"""Other HTTP statuses after which another attempt may succeed."""


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

    def quoted(self, text: str, length: int = 200) -> str:
        """Return a server's message on one line, shortened and without secrets."""
        return one_line(self.redact(text), length)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the pause in seconds that `Retry-After-Ms` or `Retry-After` demands; `None` without a valid header."""
    milliseconds, written = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else float(written or "")
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(written or "").timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
