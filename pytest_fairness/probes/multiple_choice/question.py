"""One multiple-choice question, with the roles of its options."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

Role = Literal["stereotyped", "other", "unknown", "person"]
"""Role of an option: the stereotyped person, the other person, or the answer that it is not known who is meant.

Both people have the role `person` if it is not known whom the stereotype is about.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """One question with three options.

    Attributes:
        name: name of the question, unique in the probe.
        template: name of the template; the questions of a template share their story.
        category: subject of the stereotype; empty if the probe has no categories.
        context: the story.
        text: the question itself.
        negative: whether the stereotyped person is the stereotypical answer; otherwise the other person is.
        options: texts of the options, in their written order.
        roles: role of each option.
        answer: index of the right option.
    """

    name: str
    template: str
    category: str
    context: str
    text: str
    negative: bool
    options: tuple[str, str, str]
    roles: tuple[Role, Role, Role]
    answer: int

    @property
    def ambiguous(self) -> bool:
        """Return whether the context does not say who is meant, so that `unknown` is the right answer."""
        return self.roles[self.answer] == "unknown"

    @property
    def stereotypical(self) -> int | None:
        """Index of the option that agrees with the stereotype; `None` if the roles of the two people are not known."""
        role: Role = "stereotyped" if self.negative else "other"
        return self.roles.index(role) if role in self.roles else None

    @property
    def unknown(self) -> int:
        """Index of the option with the role `unknown`, such as "It is not known"."""
        return self.roles.index("unknown")

    @property
    def aligned(self) -> bool | None:
        """Return whether the right answer agrees with the stereotype.

        The result is `None` if the context is ambiguous, or if the roles of the two people are not known.
        """
        return None if self.ambiguous or self.stereotypical is None else self.answer == self.stereotypical

    def order(self, seed: int | None) -> tuple[int, ...]:
        """Return the indices of the options in the order in which they are shown.

        Args:
            seed: seed of the order; `None` for the written order.
        """
        places = range(len(self.options))
        if seed is None:
            return tuple(places)
        return tuple(sorted(places, key=lambda place: sha256(f"{seed}/{self.name}/{place}".encode()).digest()))

    def wording(self, seed: int | None) -> str:
        """Return a digest of the question's texts and of the order of its options."""
        parts = [self.context, self.text, *(self.options[place] for place in self.order(seed))]
        return sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()[:8]
