"""Common part of the clients that use the SDKs of OpenAI and Anthropic, which are generated alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypedDict

import httpx2

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Json, Response
from pytest_fairness.targets.address import public_url
from pytest_fairness.targets.api_keys import hiding, is_distinct, secrets_of
from pytest_fairness.targets.http_client import BoundedClient, is_too_long, parsed, too_long
from pytest_fairness.targets.http_errors import HttpErrors

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions of reading a response that has not the expected form."""


class Connection(TypedDict):
    """Arguments of both SDKs' client classes."""

    base_url: str
    timeout: float
    max_retries: int
    http_client: BoundedClient


class SdkClient(ABC):
    """Client of one server for all requests of a target. It never retries by itself; `Sender` does.

    Args:
        sdk: the module `openai` or `anthropic`.
        name: the target's name, for messages.
        model: the model, which is sent with every request.
        base_url: address of the API.
        key: the API key, or an empty text.
        timeout: seconds that one attempt may take.
        max_bytes: most bytes of a response's body.
        where: settings that name the endpoint and the key, for messages.
        trust_environment: whether the proxies of the environment are used.
    """

    def __init__(
        self,
        sdk: ModuleType,
        name: str,
        model: str,
        *,
        base_url: str,
        key: str,
        timeout: float,
        max_bytes: int,
        where: str,
        trust_environment: bool = True,
    ) -> None:
        self._sdk, self._name, self._model, self._where = sdk, name, model, where
        self._endpoint = public_url(base_url)
        secrets = [key, *secrets_of(base_url)]
        self._errors = HttpErrors(name, self._endpoint, where, hiding(secrets))
        self._hidden_in_answers = hiding(filter(is_distinct, secrets))
        self._http_client = BoundedClient(
            max_bytes=max_bytes,
            timeout=timeout,
            limits=sdk.DEFAULT_CONNECTION_LIMITS,
            follow_redirects=True,
            trust_env=trust_environment,
        )
        self._connection: Connection = {
            "base_url": base_url,
            "timeout": timeout,
            "max_retries": 0,
            "http_client": self._http_client,
        }

    async def close(self) -> None:
        """Close the connections."""
        await self._http_client.aclose()

    @abstractmethod
    def _status_error(self, status: int, said: str, error: Any) -> RequestFailed | TargetError:
        """Return the error for an HTTP status; `said` is the server's message, `error` the SDK's exception."""

    def _error_of(self, error: Any) -> RequestFailed | TargetError:
        return self._status_error(error.status_code, said_in(error), error)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turn the exceptions of the SDK into errors that say what to do."""
        try:
            yield
        except self._sdk.APIStatusError as error:
            raise self._error_of(error) from error
        except self._sdk.APITimeoutError as error:
            raise self._errors.timed_out(error.__cause__) from error
        except self._sdk.APIConnectionError as error:
            raise self._errors.disconnected(error.__cause__ or error) from error

    def _key_rejected(self, status: int) -> TargetError:
        # Without the server's message, which may quote the key.
        return TargetError(f"{self._name}: {self._endpoint} rejects the key (HTTP {status}). Check {self._where}.")

    def _malformed(self, wanted: str, content: bytes) -> RequestFailed:
        """Return the error for a response that is not what was wanted."""
        shown = self._errors.quoted(content.decode("utf-8", "replace"), 120)
        message = f"{self._name}: the response of {self._endpoint} is not {wanted}: {shown!r}"
        return RequestFailed(message, retry=RetryReason.TRANSIENT)


async def read_response(read: Callable[[httpx2.Response], Response], response: httpx2.Response) -> Response:
    """Return what `read` makes of a response, or the answer that stands for a response beyond the limit."""
    return too_long() if is_too_long(response) else await parsed(read, response)


def said_in(error: Any) -> str:
    """Return the server's message in an `APIStatusError` of an SDK."""
    body = error.body
    for part in (body.get("error") if isinstance(body, dict) else None, body):
        if isinstance(part, dict) and isinstance(part.get("message"), str):
            return str(part["message"])
    return str(error.response.text)


def token_count(value: Json) -> int | None:
    """Return a number of tokens that a server reports, or `None` for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
