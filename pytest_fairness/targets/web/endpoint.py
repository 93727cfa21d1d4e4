"""Description of a model behind an API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Endpoint:
    """Model behind an API, with the settings of the connection to its server.

    Attributes:
        name: the target's name, for messages.
        model: name of the model, which every request contains.
        base_url: address of the API.
        key: the API key; an empty text for a server that needs none.
        timeout: time limit of one attempt in seconds.
        max_bytes: maximum number of bytes of a response's body.
        where: names of the settings for the address and the key, for messages.
        key_name: name of the environment variable of the key; `None` if the server takes no key.
        trust_environment: whether to use the proxies that environment variables set.
        headers: further headers of every request.
        secrets: values in `headers` that must appear in no message.
    """

    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    timeout: float
    max_bytes: int
    where: str
    key_name: str | None = None
    trust_environment: bool = True
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
