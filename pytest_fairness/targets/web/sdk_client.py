"""Base class of the clients that use the SDKs of OpenAI and Anthropic; both SDKs have the same structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypedDict

import httpx2

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Json, Response
from pytest_fairness.targets.web.address import public_url
from pytest_fairness.targets.web.api_keys import is_distinct, secret_remover, secrets_of
from pytest_fairness.targets.web.endpoint import Endpoint
from pytest_fairness.targets.web.http_client import BoundedClient, is_too_long, parsed, too_long
from pytest_fairness.targets.web.http_errors import HttpErrors

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions that the parsing of a malformed response may raise."""


class Connection(TypedDict):
    """Arguments of both SDKs' client classes."""

    base_url: str
    timeout: float
    max_retries: int
    http_client: BoundedClient


class SdkClient(ABC):
    """Client of one server for all requests of a target; the SDK repeats no requests, because `Sender` does.

    Args:
        sdk: the module `openai` or `anthropic`.
        endpoint: the model and its server.
    """

    def __init__(self, sdk: ModuleType, endpoint: Endpoint) -> None:
        self._sdk, self._name, self._model, self._where = sdk, endpoint.name, endpoint.model, endpoint.where
        self._endpoint = public_url(endpoint.base_url)
        secrets = [endpoint.key, *secrets_of(endpoint.base_url)]
        # A login in the address takes the place of the key.
        self._unset_key = None if any(secrets) else endpoint.key_name
        self._errors = HttpErrors(
            self._name, self._endpoint, self._where, secret_remover(secrets), no_key=self._unset_key is not None
        )
        self._hidden_in_answers = secret_remover(filter(is_distinct, secrets))
        self._http_client = BoundedClient(
            max_bytes=endpoint.max_bytes,
            timeout=endpoint.timeout,
            limits=sdk.DEFAULT_CONNECTION_LIMITS,
            follow_redirects=True,
            trust_env=endpoint.trust_environment,
        )
        self._connection: Connection = {
            "base_url": endpoint.base_url,
            "timeout": endpoint.timeout,
            "max_retries": 0,
            "http_client": self._http_client,
        }

    async def close(self) -> None:
        """Close the connections."""
        await self._http_client.aclose()

    @abstractmethod
    def _status_error(self, status: int, said: str, error: Any) -> RequestFailed | TargetError:
        """Return the error for an HTTP status other than 401 and 403.

        Args:
            status: the status.
            said: the server's message.
            error: the SDK's exception.
        """

    def _error_of(self, error: Any) -> RequestFailed | TargetError:
        if error.status_code in (401, 403) and self._unset_key is not None:
            return TargetError(
                f"{self._name}: {self._endpoint} asks for an API key (HTTP {error.status_code}), and none is set. Set "
                f"the environment variable {self._unset_key}."
            )
        if error.status_code in (401, 403):
            # The server's message is left out, because it may quote the key.
            return TargetError(
                f"{self._name}: {self._endpoint} rejects the key (HTTP {error.status_code}). Check {self._where}."
            )
        return self._status_error(error.status_code, said_in(error), error)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Convert exceptions of the SDK into errors whose messages say what to do."""
        try:
            yield
        except self._sdk.APIStatusError as error:
            raise self._error_of(error) from error
        except self._sdk.APITimeoutError as error:
            raise self._errors.timed_out(error.__cause__) from error
        except self._sdk.APIConnectionError as error:
            raise self._errors.disconnected(error.__cause__ or error) from error
        except httpx2.TimeoutException as error:  # while a body is streamed, the SDK does not wrap these
            raise self._errors.timed_out(error) from error
        except httpx2.HTTPError as error:
            raise self._errors.disconnected(error) from error

    def _malformed(self, wanted: str, content: bytes) -> RequestFailed:
        """Return the error for a response that is not `wanted`, such as `a message`."""
        shown = self._errors.quoted(content.decode("utf-8", "replace"), 120)
        message = f"{self._name}: the response of {self._endpoint} is not {wanted}: {shown!r}"
        return RequestFailed(message, retry=RetryReason.TRANSIENT)


async def read_response(read: Callable[[httpx2.Response], Response], response: httpx2.Response) -> Response:
    """Return the result of `read` for a response; for a body over the limit, return `too_long()`."""
    return too_long() if is_too_long(response) else await parsed(read, response)


def said_in(error: Any) -> str:
    """Return the server's message in an `APIStatusError` of an SDK."""
    body = error.body
    for part in (body.get("error") if isinstance(body, dict) else None, body):
        if isinstance(part, dict) and isinstance(part.get("message"), str):
            return str(part["message"])
    return str(error.response.text)


def token_count(value: Json) -> int | None:
    """Return the number of tokens that a server reports; `None` if the value is not a number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
