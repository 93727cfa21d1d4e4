"""Description of a model behind an API."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Endpoint:
    """Model behind an API, and how its client connects to it.

    Attributes:
        name: the target's name, for messages.
        model: the model, which is sent with every request.
        base_url: address of the API.
        key: the API key; an empty text for a server that needs none.
        timeout: seconds that one attempt may take.
        max_bytes: most bytes of a response's body.
        where: settings that name the endpoint and the key, for messages.
        trust_environment: whether the proxies of the environment are used.
    """

    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    timeout: float
    max_bytes: int
    where: str
    trust_environment: bool = True
