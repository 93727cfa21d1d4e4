"""Base class and functions that the clients of OpenAI's and Anthropic's batch APIs share."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from pytest_fairness.errors import FairnessError, RequestFailed, TargetError
from pytest_fairness.plurals import joined
from pytest_fairness.records import SAMPLING_PARAMETERS, Json, Response
from pytest_fairness.targets.batch_client import BatchResult
from pytest_fairness.targets.web.api_client import MALFORMED, ApiClient, StatusError
from pytest_fairness.targets.web.endpoint import Endpoint
from pytest_fairness.targets.web.http_client import bounded_lines
from pytest_fairness.targets.web.http_library import httpx

CLOCK_SKEW = 300.0
"""Seconds by which the clocks of a provider and of this machine may differ."""
LINE_OVERHEAD = 65_536
"""Maximum number of bytes of a line of results in addition to the bytes of the answer."""
PAGE = 100
"""Number of batches on a page of the list of all batches."""
_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")

T = TypeVar("T")


class ApiBatches(ApiClient):
    """Base class of the batch clients, which can also download files of any size.

    Args:
        endpoint: the model and its server.
        headers: headers of every request.
    """

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        super().__init__(endpoint, headers)
        self._line_limit = endpoint.max_bytes + LINE_OVERHEAD
        self._streaming_client = httpx.AsyncClient(
            headers=self._headers, timeout=endpoint.timeout, trust_env=endpoint.trust_environment
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._streaming_client.aclose()
        await super().close()

    def _rejected(self, said: str) -> RequestFailed | None:
        """Return the error of a request of a batch whose parameter is rejected; `None` if no parameter is named."""
        named = sorted({*re.findall(r"\w+", said)} & {*SAMPLING_PARAMETERS, "max_completion_tokens"})
        if not named:
            return None
        return RequestFailed(
            f"{self._name} rejects {joined(named)} in a batch ({self._errors.quoted(said)}). Change the probe's "
            "`sampling`, whose `extra` takes other names, or run without --fairness-batch: single requests are adapted "
            "to the server.",
            check="the probe's `sampling`",
        )

    async def _read_json(self, wanted: str, read: Callable[[Json], T], method: str, path: str, **more: Any) -> T:
        """Send a request, read the JSON of its response with `read`, and return the result.

        Args:
            wanted: what the response must be, for messages, such as `a batch`.
            read: function that reads the JSON.
            method: HTTP method.
            path: path that is appended to the server's address.
            more: further arguments of `_send`.

        Raises:
            RequestFailed: the request failed, or `read` cannot read the response.
            TargetError: no request can be answered.
        """
        with self._translated_errors():
            response = await self._send(method, path, **more)
        try:
            return read(json.loads(response.content))
        except MALFORMED as error:
            raise self._malformed_error(wanted, response.content) from error

    async def _all_batches(
        self, path: str, cursor: str, read: Callable[[Json], tuple[str, float, T]]
    ) -> AsyncGenerator[tuple[str, float, T]]:
        """Yield the result of `read` for each batch of the account, the newest batch first.

        Args:
            path: path of the list.
            cursor: name of the query parameter for the id after which a page begins.
            read: function from the JSON of a batch to its id, its date in seconds, and further values.
        """
        query = {"limit": str(PAGE)}
        more = True
        while more:
            batches, more = await self._read_json(
                "a list of batches",
                lambda page: ([read(batch) for batch in page["data"]], bool(page.get("has_more"))),
                "GET",
                path,
                query=query,
            )
            for batch in batches:
                yield batch
                query[cursor] = batch[0]
            more = more and bool(batches)

    async def _read_lines(self, path: str, read: Callable[[Json], BatchResult]) -> AsyncGenerator[BatchResult]:
        """Yield the result of `read` for each line of a file; leave out lines that are too long or cannot be read.

        Args:
            path: path of the file.
            read: function that reads the JSON of one line.
        """
        with self._translated_errors():
            async with self._streaming_client.stream("GET", self._url(path)) as response:
                if not response.is_success:
                    await response.aread()
                    raise StatusError(response)
                async for line in bounded_lines(response.aiter_bytes(), self._line_limit):
                    with suppress(*MALFORMED):
                        yield read(json.loads(line))

    def _outcome(self, read: Callable[[Json], Response], answer: Json, wanted: str) -> Response | FairnessError:
        """Return the response that `read` finds in the JSON of one answer, or an error if `read` fails.

        `wanted` says what the answer must be, for the message, such as `a message`.
        """
        try:
            return read(answer)
        except RequestFailed as error:
            return error
        except MALFORMED:
            return self._malformed_error(wanted, str(answer).encode("utf-8", "replace"), counts=False)

    def _no_batches_error(self, said: str) -> TargetError:
        """Return the error for HTTP status 404: the server has no batches, or does not have this batch."""
        return TargetError(
            f"{self._name}: {self._endpoint} offers no batches, or has no such batch (HTTP 404: "
            f"{self._errors.quoted(said)}). Check {self._where}: a batch belongs to the account that created it. To "
            "send the requests one by one, turn fairness_batch off."
        )


def id_of(value: Json) -> str:
    """Return the id of a batch or a file.

    Raises:
        ValueError: the value is not an id that can be part of an address.
    """
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError("not an id")
    return value
