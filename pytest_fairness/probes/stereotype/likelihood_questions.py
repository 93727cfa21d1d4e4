"""What a model is asked of a case of sentences: how likely it finds each of them."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_fairness.probes.base import block_text
from pytest_fairness.probes.stereotype.cases import Case
from pytest_fairness.records import Prompt, Request

SENTENCES = ("stereotype", "anti_stereotype", "unrelated")
"""The kinds of sentence, which are the label `sentence` of the answers."""


def questions(case: Case) -> Iterator[Prompt]:
    """The likelihood of each sentence of a case, after its context if it has one; asked once, as nothing is drawn."""
    context = block_text(case.context)
    labels = {"case": case.name} | ({} if case.category is None else {"category": case.category})
    for sentence in SENTENCES:
        written = getattr(case, sentence)
        if isinstance(written, str):
            text = block_text(written)
            continuation = f" {text}" if context else text
            request = Request(context, answer_format="likelihood", continuation=continuation)
            yield Prompt(request, {**labels, "sentence": sentence}, 0)
