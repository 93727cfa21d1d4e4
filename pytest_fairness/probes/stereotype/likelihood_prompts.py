"""Prompts that request the likelihood of the sentences of a case."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_fairness.probes.field_types import block_text
from pytest_fairness.probes.stereotype.cases import Case
from pytest_fairness.records import Prompt, Request

SENTENCES = ("stereotype", "anti_stereotype", "unrelated")
"""Kinds of sentence: the values of the label `sentence`."""


def prompts(case: Case) -> Iterator[Prompt]:
    """Yield a prompt for each sentence of a case: a request for the sentence's likelihood after the case's context.

    There is one trial, because a likelihood is not sampled.
    """
    context = block_text(case.context)
    labels = {"case": case.name} | ({} if case.category is None else {"category": case.category})
    for sentence in SENTENCES:
        written = getattr(case, sentence)
        if isinstance(written, str):
            text = block_text(written)
            continuation = f" {text}" if context else text
            request = Request(context, answer_format="likelihood", continuation=continuation)
            yield Prompt(request, {**labels, "sentence": sentence}, 0)
