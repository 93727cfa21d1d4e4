from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.languages.swap_terms import SwapTerms, SwapTermsError
from pytest_fairness.languages.swapping import LeftOut, Swap, swap

ORIGIN = SwapTerms.of_rows(["british", "nigerian"], [["oliver", "chidi"], ["from Leeds", "from Lagos"]])


@pytest.mark.parametrize(
    ("rows", "row", "message"),
    [
        ([["a", "b"], ["c"]], 2, "Row 2 has 1 terms. Give one term for each group: x, y."),
        ([["a", " "]], 1, "Row 1 has no term for y. Add the term, or remove the row."),
        ([["a", "b"], ["c", "B"]], 2, "'B' of y in row 2 is also a term of y in row 1."),
        ([["a", "b"], ["b", "c"]], 2, "'b' of x in row 2 is also a term of y in row 1."),
        ([["a", "A"]], 1, "'A' of y in row 1 is also a term of x in row 1."),
        ([], None, "The list of terms has no rows. Add a row with one term for each group."),
    ],
)
def test_terms_that_are_not_paired_one_to_one(rows: Sequence[Sequence[str]], row: int | None, message: str) -> None:
    with pytest.raises(SwapTermsError) as raised:
        SwapTerms.of_rows(["x", "y"], rows)
    assert message in str(raised.value)
    assert raised.value.row == row


@pytest.mark.parametrize("groups", [[], ["x"], ["x", "x"]])
def test_a_swap_needs_two_groups(groups: Sequence[str]) -> None:
    with pytest.raises(SwapTermsError, match="two or more different groups"):
        SwapTerms.of_rows(groups, [])


def test_there_is_no_other_built_in_list() -> None:
    with pytest.raises(LookupError, match="no built-in list 'age' for the language 'en'"):
        SwapTerms.built_in("age", "en")


def test_own_terms_are_replaced_in_their_capitalisation() -> None:
    found = swap("Oliver from Leeds calls. OLIVER’S card is lost.", ORIGIN, ["nigerian", "british"])
    assert isinstance(found, Swap)
    assert found.group == "british"
    assert found.versions == {
        "nigerian": "Chidi from Lagos calls. CHIDI’S card is lost.",
        "british": "Oliver from Leeds calls. OLIVER’S card is lost.",
    }
    assert found.replaced == (("Oliver", 0), ("from Leeds", 7), ("OLIVER", 25))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The card is lost.", "the prompt names no group"),
        ("Oliver met Chidi.", "the prompt names several groups: british, nigerian"),
    ],
)
def test_a_prompt_without_versions(text: str, reason: str) -> None:
    assert swap(text, ORIGIN, ["british", "nigerian"]) == LeftOut(reason)


def test_articles_follow_the_term() -> None:
    terms = SwapTerms.of_rows(["a", "b"], [["British", "Irish"], ["European", "African"], ["heir", "child"]])
    found = swap("A British teacher, a European and AN HEIR met an old woman.", terms, ["b"])
    assert isinstance(found, Swap)
    assert found.versions == {"b": "An Irish teacher, an African and A CHILD met an old woman."}


def test_letters_of_other_languages_keep_their_case() -> None:
    terms = SwapTerms.of_rows(["a", "b"], [["Straße", "Gasse"], ["Übung", "Ähre"]], "de")
    found = swap("Straße und übung, STRASSE, \u017ftraße.", terms, ["b"])
    assert isinstance(found, Swap)
    assert found.versions == {"b": "Gasse und ähre, STRASSE, \u017ftraße."}


@given(
    st.lists(
        st.text("abcdÄß é", min_size=1, max_size=6),
        min_size=2,
        max_size=8,
        unique_by=lambda term: term.strip().casefold(),
    ),
    st.text("abcdÄßABCD é.'-", max_size=30),
)
def test_swapping_back_own_terms_gives_the_prompt(words: list[str], text: str) -> None:
    rows = [pair for pair in zip(words[::2], words[1::2], strict=False) if pair[0].strip() and pair[1].strip()]
    try:
        terms = SwapTerms.of_rows(["x", "y"], rows)
    except SwapTermsError:
        return
    found = swap(text, terms, ["x", "y"])
    if isinstance(found, Swap):
        (other,) = {"x", "y"} - {found.group}
        back = swap(found.versions[other], terms, ["x", "y"])
        assert isinstance(back, LeftOut) or back.group == found.group or back.versions[found.group] == text


@given(st.sampled_from(["en", "de", "fr", "es"]), st.text(max_size=40))
def test_every_text_has_versions_or_a_reason(code: str, text: str) -> None:
    terms = SwapTerms.built_in("gender", code)
    assert isinstance(swap(text, terms, terms.groups), Swap | LeftOut)
