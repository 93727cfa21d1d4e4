"""Parts that the batch clients of OpenAI's and Anthropic's SDKs share."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from types import ModuleType
from typing import Any

from pytest_fairness.errors import FairnessError, RequestFailed, TargetError
from pytest_fairness.records import Json, Response
from pytest_fairness.targets.batch_client import BatchResult
from pytest_fairness.targets.web.endpoint import Endpoint
from pytest_fairness.targets.web.http_client import StreamingClient, bounded_lines
from pytest_fairness.targets.web.sdk_client import MALFORMED, SdkClient

CLOCK_SKEW = 300.0
"""Seconds by which the clocks of a provider and of this machine may differ."""
LINE_OVERHEAD = 65_536
"""Maximum number of bytes of a line of results in addition to the bytes of the answer."""
_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")


class SdkBatches(SdkClient):
    """Base class of the batch clients, which adds downloads without a size limit to a client of single requests.

    Args:
        sdk: the module `openai` or `anthropic`.
        endpoint: the model and its server.
    """

    def __init__(self, sdk: ModuleType, endpoint: Endpoint) -> None:
        super().__init__(sdk, endpoint)
        self._line_limit = endpoint.max_bytes + LINE_OVERHEAD
        self._streaming_client = StreamingClient(
            endpoint.base_url, timeout=endpoint.timeout, trust_env=endpoint.trust_environment
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._streaming_client.aclose()
        await super().close()

    async def _read_lines(
        self, download: AbstractAsyncContextManager[Any], read: Callable[[Json], BatchResult]
    ) -> AsyncGenerator[BatchResult]:
        """Yield the result of `read` for each line of a file; leave out lines that are too long or cannot be read.

        Args:
            download: the SDK's response, whose body is the file.
            read: function that reads the JSON of one line.
        """
        with self._translated_errors():
            async with download as response:
                async for line in bounded_lines(response.iter_bytes(), self._line_limit):
                    with suppress(*MALFORMED):
                        yield read(json.loads(line))

    def _outcome(self, read: Callable[[Json], Response], answer: Json, wanted: str) -> Response | FairnessError:
        """Return the response that `read` finds in the JSON of one answer, or the error that `read` raises."""
        try:
            return read(answer)
        except RequestFailed as error:
            return error
        except MALFORMED:
            return self._malformed(wanted, str(answer).encode("utf-8", "replace"))

    def _id(self, value: Json) -> str:
        """Return the id that a server gives to a batch or a file.

        Raises:
            RequestFailed: the value is not an id that can be part of an address.
        """
        if not isinstance(value, str) or not _ID.fullmatch(value):
            raise self._malformed("a batch with an id", str(value).encode("utf-8", "replace"))
        return value

    def _no_batches(self, said: str) -> TargetError:
        """Return the error for the HTTP status 404."""
        return TargetError(
            f"{self._name}: {self._endpoint} offers no batches, or has no such batch (HTTP 404: "
            f"{self._errors.quoted(said)}). Check {self._where}: a batch belongs to the account that created it. To "
            "send the requests one by one, turn fairness_batch off."
        )
