"""Reasons to doubt a measurement, for audits of texts; see `Audit.concerns`."""

from __future__ import annotations

from pytest_fairness.audits.text.groups import MOST_DOCUMENTS, Groups
from pytest_fairness.audits.text.samples.linear_classifier import FEWEST_DIFFERENT
from pytest_fairness.plurals import joined
from pytest_fairness.records import Concern, Measurement

ONE_SIDED_SHARE = 0.10
"""Largest share of answers that may be left out because their stratum holds only one group."""
SHOWN_STRATA = 3


def repeated_or_one_sided(groups: Groups) -> list[Concern]:
    """Return concerns if answers are repeated, or if strata hold only one group."""
    one_sided = groups.one_sided()
    lost, usable = sum(one_sided.values()), sum(groups.usable.values())
    if not lost:
        return groups.repetition
    names = joined([f"{name} ({count})" for name, count in sorted(one_sided.items())], SHOWN_STRATA)
    return [
        *groups.repetition,
        Concern(
            "one_sided_strata",
            f"{lost} of {usable} answers were left out, because their strata hold only one group: {names}. "
            "Request both groups in each stratum",
            withholds="pass" if lost > ONE_SIDED_SHARE * usable else "nothing",
        ),
    ]


def sampled_texts(groups: Groups) -> list[Concern]:
    """Return a note if a group has so many answers that only a sample of its texts is compared, else an empty list."""
    larger = [f"{count:,} for {name}" for name, count in groups.usable.items() if count > MOST_DOCUMENTS]
    if not larger:
        return []
    message = (
        f"a random sample of the texts is compared, {MOST_DOCUMENTS:,} of a group ({' and '.join(larger)} are usable), "
        "with the shares of the strata. Standard errors and tests are those of the sample, so that more answers do not "
        "make them more precise"
    )
    return [Concern("sampled_texts", message, withholds="nothing")]


def few_different_answers(measurement: Measurement) -> list[Concern]:
    """Return a concern if a group has too few different answers to train a classifier, else an empty list.

    The detail `different_answers` of the measurement is the smaller of the two groups' numbers of different answers.
    """
    if (different := measurement.details["different_answers"]) >= FEWEST_DIFFERENT:
        return []
    message = (
        f"one group has only {different} different answers, but {FEWEST_DIFFERENT} are needed to train and test a "
        "classifier. The accuracy is therefore set to 0.5. Raise `sampling.temperature` or `trials`, or give several "
        "prompts"
    )
    return [Concern("few_different_answers", message)]


def terms_never_occur(lexicon: str, measurement: Measurement) -> list[Concern]:
    """Return a concern if no term of the lexicon with this name occurs in any answer, else an empty list."""
    if measurement.details["occurring_terms"]:
        return []
    listed = measurement.details["terms_in_lexicon"]
    message = (
        f"none of the {listed} terms of the lexicon {lexicon} occurs in any answer, so that the groups cannot be "
        f"compared. Check the spelling in `lexicons.{lexicon}`, and the language of the answers; lead* stands for all "
        "words that begin with lead"
    )
    return [Concern("terms_never_occur", message, withholds="verdict")]
