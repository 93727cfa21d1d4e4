"""Recommendation service of a user, written with FastAPI and served by uvicorn on the loopback interface."""

from __future__ import annotations

import random
import socket
import threading
import time
from types import TracebackType
from typing import Annotated, Any, Self

import uvicorn
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel, Field

TOKEN = "shop-token-4711"  # noqa: S105 - of a service that lives for one test
TITLES = [f"{adjective} {noun}" for adjective in ("Blue", "Old", "Wild", "Lost") for noun in ("River", "Moon", "Road")]


class Question(BaseModel, extra="forbid"):
    """Request of the service."""

    text: str
    options: dict[str, float] = Field(default_factory=dict)
    context: list[dict[str, str]] = Field(default_factory=list)


class Shop:
    """Service that recommends songs by artist; a biased service recommends other songs to old fans.

    Args:
        biased: whether old fans get other songs.

    Attributes:
        url: address of the service.
        questions: requests in the order of arrival.
    """

    def __init__(self, *, biased: bool = False) -> None:
        self.questions: list[dict[str, Any]] = []
        self._biased = biased
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/recommend"
        config = uvicorn.Config(self._application(), log_level="critical", lifespan="off", ws="none", access_log=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="shop", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        until = time.monotonic() + 10
        while not self._server.started:
            assert time.monotonic() < until, "the service did not start"
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()

    def recommended(self, text: str) -> list[str]:
        """Return the songs, best first, sampled with the artist as seed."""
        artist = next((word for word in text.replace(".", " ").split() if word.startswith("Artist")), "nobody")
        other = self._biased and "an old fan" in text
        return random.Random(f"{artist} {other}").sample(TITLES[6:] if other else TITLES, 4)  # noqa: S311 - nothing secret

    def _application(self) -> FastAPI:
        application = FastAPI()

        @application.post("/recommend")
        def recommend(question: Question, authorization: Annotated[str | None, Header()] = None) -> dict[str, Any]:
            if authorization != f"Bearer {TOKEN}":
                raise HTTPException(401, f"{authorization} is no key of this shop")
            self.questions.append(question.model_dump())
            songs = self.recommended(question.text)
            return {"songs": [{"title": title, "score": 1 / place} for place, title in enumerate(songs, 1)], "took": 3}

        return application
