"""Versions of a user's own prompts for each group, made by swapping terms, and the prompts that are left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from pytest_fairness.errors import ProbeError
from pytest_fairness.languages.swaps.swapping import LeftOut, Swap, swap
from pytest_fairness.plurals import counted
from pytest_fairness.probes.checks import canonical
from pytest_fairness.probes.diagnostics import Diagnostic, Location, raise_file_errors
from pytest_fairness.probes.generation.prompts_file import ID_DIGITS, PromptRow, PromptsFile
from pytest_fairness.probes.generation.swap_settings import PLACEBO, SwapLists

LEAST_ANSWERS = 8
"""Minimum number of usable answers of each group for audits of texts."""
SHOWN_REASONS = 5
_QUOTED = re.compile(r"'.*'")
_WORD = re.compile(r"\w[\w-]*")


@dataclass(frozen=True)
class SwappedPrompt:
    """A prompt with its versions.

    Attributes:
        row: the prompt as written.
        group: group that the written prompt names.
        versions: text of the prompt for each group. If a placebo is possible, the key `PLACEBO` has a text that names
            the unmarked group with other words.
        warnings: reasons why a person should check the versions before use.
        placebo_terms: terms of the unmarked group in the placebo, such as another name.
    """

    row: PromptRow
    group: str
    versions: Mapping[str, str]
    warnings: tuple[str, ...]
    placebo_terms: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Digest of the prompt's texts for all groups; two runs are compared on the prompts with equal digests."""
        versions = sorted((group, text) for group, text in self.versions.items() if group != PLACEBO)
        return sha256(canonical(versions).encode()).hexdigest()[:ID_DIGITS]

    @property
    def terms(self) -> frozenset[str]:
        """The words in which the versions for the groups differ, and the terms of the placebo, as written."""
        words = [{*_WORD.findall(text)} for group, text in self.versions.items() if group != PLACEBO]
        return frozenset({*self.placebo_terms}.union(*words) - set.intersection(*words))


@dataclass(frozen=True)
class LeftOutPrompt:
    """A prompt in which no swap is possible, with the reason."""

    row: PromptRow
    reason: str


@dataclass(frozen=True)
class SwappedPrompts:
    """Prompts of a probe with their versions.

    Attributes:
        prompts: the prompts that are sent, in the order of the file.
        left_out: prompts in which no swap is possible, in the order of the file.
        not_examined: number of further prompts of the file, which are not examined because the sample is complete.
    """

    prompts: tuple[SwappedPrompt, ...]
    left_out: tuple[LeftOutPrompt, ...]
    not_examined: int = 0

    @property
    def reasons(self) -> Counter[str]:
        """Return the number of left-out prompts by reason; `…` stands for words quoted from a prompt."""
        return Counter(_QUOTED.sub("…", prompt.reason) for prompt in self.left_out)


def swapped(row: PromptRow, lists: SwapLists) -> SwappedPrompt | LeftOutPrompt:
    """Return the versions of one prompt, or the reason why no swap is possible in it."""
    groups, unmarked = lists.axis.values, lists.axis.unmarked
    result = swap(row.text, lists.terms, groups)
    if isinstance(result, LeftOut):
        return LeftOutPrompt(row, result.reason)
    versions = {group: result.versions[group] for group in groups}
    placebo = _placebo(result, lists) if lists.has_placebo else None
    if placebo is None or placebo == versions[unmarked]:
        return SwappedPrompt(row, result.group, versions, result.warnings)
    versions[PLACEBO] = placebo
    swapped_placebo = swap(placebo, lists.terms, groups)
    terms = tuple(term for term, _ in swapped_placebo.replaced) if isinstance(swapped_placebo, Swap) else ()
    return SwappedPrompt(row, result.group, versions, result.warnings, terms)


def _placebo(swapped: Swap, lists: SwapLists) -> str | None:
    """Return the placebo of a swapped prompt, which names the unmarked group; `None` if no placebo is possible."""
    unmarked = lists.axis.unmarked
    if lists.own_placebo is not None:
        other = swap(swapped.versions[unmarked], lists.own_placebo, (unmarked, PLACEBO))
        return other.versions[PLACEBO] if isinstance(other, Swap) else None
    if swapped.group == unmarked:
        return swapped.placebo
    own = swap(swapped.versions[unmarked], lists.terms, lists.axis.values)
    return own.placebo if isinstance(own, Swap) and own.group == unmarked else None


def of_rows(rows: Iterable[PromptRow], lists: SwapLists, most: int | None = None) -> SwappedPrompts:
    """Return the versions of prompts.

    Args:
        rows: the prompts, in the order in which they are examined.
        lists: the groups and the terms.
        most: maximum number of prompts with versions; the remaining rows are not examined. `None` for no maximum.
    """
    prompts: list[SwappedPrompt] = []
    left_out: list[LeftOutPrompt] = []
    not_examined = 0
    for row in rows:
        if most is not None and len(prompts) == most:
            not_examined += 1
        elif isinstance(found := swapped(row, lists), SwappedPrompt):
            prompts.append(found)
        else:
            left_out.append(found)
    return SwappedPrompts(
        tuple(sorted(prompts, key=lambda prompt: prompt.row.line)),
        tuple(sorted(left_out, key=lambda prompt: prompt.row.line)),
        not_examined,
    )


def of_file(file: PromptsFile, lists: SwapLists) -> SwappedPrompts:
    """Return the versions of the prompts in a file; only prompts in which a swap is possible count for the sample.

    Raises:
        ProbeError: the file cannot be read, lacks the column, or a swap is possible in fewer prompts than the sample.
    """
    found = of_rows(file.in_sample_order(), lists, file.sample)
    name = file.file.name
    if not found.prompts:
        raise_file_errors([f"{name}:{prompt.row.line}: no swap: {prompt.reason}" for prompt in found.left_out], name)
    if len(found.prompts) < (file.sample or 1):
        total = len(found.prompts) + len(found.left_out)
        raise ProbeError(
            f"{name}:1: a swap is possible in only {len(found.prompts)} of {counted(total, 'prompt')}: set `sample` to "
            f"at most {len(found.prompts)}, or add prompts. Left out: {listed_reasons(found)}"
        )
    return found


def diagnostics(swapped_prompts: SwappedPrompts, trials: int, *, in_file: bool) -> Iterator[Diagnostic]:
    """Yield diagnostics for prompts in which no swap is possible, and for groups with too few answers.

    Args:
        swapped_prompts: the prompts.
        trials: number of answers of each group.
        in_file: whether the prompts are in a file. Prompts of a file may be left out without a diagnostic.
    """
    key = "prompts" if in_file else "prompt"
    if not in_file:
        several = len(swapped_prompts.prompts) + len(swapped_prompts.left_out) > 1
        for prompt in swapped_prompts.left_out:
            location: Location = (key, prompt.row.line - 1) if several else (key,)
            yield Diagnostic(location, f"no swap: {prompt.reason}")
    if swapped_prompts.prompts and trials < LEAST_ANSWERS:
        message = (
            f"each group gets only {counted(trials, 'answer')}, and audits of texts need {LEAST_ANSWERS}: raise "
            "`trials`, or add prompts in which a swap is possible"
        )
        yield Diagnostic((key,), message, at_key=True)


def listed_reasons(swapped_prompts: SwappedPrompts) -> str:
    """Return the most frequent reasons why prompts are left out, with their numbers of prompts, as a phrase."""
    reasons = swapped_prompts.reasons
    text = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(SHOWN_REASONS))
    more = len(reasons) - SHOWN_REASONS
    return f"{text}; and {counted(more, 'other reason')}" if more > 0 else text
