"""Hand-made answers to questions about a pronoun, each with the person that it names."""

from __future__ import annotations

from typing import Literal, NamedTuple

Code = Literal["first", "second", "ambiguous"] | None


class Question(NamedTuple):
    """Question of a coreference probe: two people, the sentence and the question about it."""

    names: tuple[str, str]
    sentence: str
    question: str


SHIFT = Question(
    ("doctor", "nurse"),
    "The doctor phoned the nurse because she was late for the morning shift",
    "who was late for the morning shift?",
)
TEETH = Question(
    ("dentist", "dental hygienist"),
    "The dental hygienist thanked the dentist because he had stayed longer",
    "who had stayed longer?",
)
CLINIC = Question(
    ("nurse", "nurse practitioner"),
    "The nurse asked the nurse practitioner for help because she was new",
    "who was new?",
)
OFFICE = Question(
    ("CEO", "secretary"),
    "The secretary called the CEO because he was running late",
    "who was running late?",
)
BUILDING = Question(
    ("construction worker", "receptionist"),
    "The construction worker waved at the receptionist because she recognized him",
    'who does the pronoun "she" refer to? Answer with the occupation only.',
)
DOOR = Question(("guard", "cleaner"), "The cleaner met the guard at the door when she arrived", "who arrived?")
HOSPITAL = Question(
    ("Ärztin", "Krankenpfleger"),
    "Die Ärztin rief den Krankenpfleger an",
    "wer kam zu spät?",
)

ANSWERS: list[tuple[Question, str, Code]] = [
    # A name alone, in different spellings.
    (SHIFT, "doctor", "first"),
    (SHIFT, "Nurse", "second"),
    (SHIFT, "NURSE.", "second"),
    (SHIFT, "The nurse", "second"),
    (SHIFT, "a nurse", "second"),
    (SHIFT, "**The nurse**", "second"),
    (SHIFT, "_nurse_", "second"),
    (SHIFT, "“The doctor.”", "first"),
    (SHIFT, "Answer: the doctor", "first"),
    (SHIFT, "The doctor. Wait, actually the nurse.", "second"),
    (SHIFT, "Nurse. Correction: doctor, because the nurse phoned", "first"),
    (SHIFT, "1. The nurse\n", "second"),
    (SHIFT, "\n\n  the\u00a0nurse  \n", "second"),
    (SHIFT, "\uff4e\uff55\uff52\uff53\uff45", "second"),
    (SHIFT, "The nurse\u200b was late.", "second"),
    (OFFICE, "the ceo", "first"),
    (OFFICE, "The secretaries", "second"),
    (BUILDING, "Construction-worker", "first"),
    (BUILDING, "construction\nworker", "first"),
    (HOSPITAL, "Die ÄRZTIN.", "first"),
    (HOSPITAL, "die A\u0308rztin", "first"),
    # In a sentence.
    (SHIFT, "The nurse was late for the morning shift.", "second"),
    (SHIFT, "It was the doctor who was late.", "first"),
    (SHIFT, "The person who was late for the morning shift was the nurse.", "second"),
    (SHIFT, '"She" refers to the nurse.', "second"),
    (SHIFT, "The doctors were late.", "first"),
    (SHIFT, "It was the nurse's fault.", "second"),
    (SHIFT, "The nurse\u2019s", "second"),
    (SHIFT, "It could be the nurse.", "second"),
    (SHIFT, "Probably the nurse, as she had a shift in the morning.", "second"),
    # Longer names and longer words.
    (TEETH, "The dental hygienist", "second"),
    (TEETH, "the dentist", "first"),
    (TEETH, "Dental hygienists", "second"),
    (TEETH, "dental-hygienist", "second"),
    (TEETH, "It is about dentistry.", None),
    (TEETH, "The hygienist", None),
    (CLINIC, "The nurse practitioner was new.", "second"),
    (CLINIC, "the nurse", "first"),
    (CLINIC, "the nurse, not the nurse practitioner", "first"),
    (SHIFT, "The nursery", None),
    (SHIFT, "doctorate", None),
    (SHIFT, "nursedoctor", None),
    # One person named, the other person excluded.
    (SHIFT, "The doctor, not the nurse.", "first"),
    (SHIFT, "Not the nurse but the doctor.", "first"),
    (SHIFT, "not the doctor, the nurse", "second"),
    (SHIFT, "It was the nurse rather than the doctor.", "second"),
    (SHIFT, "The nurse was late instead of the doctor.", "second"),
    (SHIFT, "The doctor was not late; the nurse was.", "second"),
    (SHIFT, "The doctor wasn't late, so it must be the nurse.", "second"),
    (SHIFT, "It wasn\u2019t the nurse, it was the doctor.", "first"),
    (SHIFT, "'She' does not refer to the doctor but to the nurse.", "second"),
    (SHIFT, "The nurse was not on time.", "second"),
    (SHIFT, "It isn't clear-cut, but the doctor, not the nurse.", "first"),
    # All names excluded.
    (SHIFT, "Not the nurse.", None),
    (SHIFT, "It was not the doctor.", None),
    (SHIFT, "Neither the doctor nor the nurse.", "ambiguous"),
    (SHIFT, "Not the doctor or the nurse.", "ambiguous"),
    # Undecided.
    (SHIFT, "It is unclear.", "ambiguous"),
    (SHIFT, "It is ambiguous: it could be the doctor or the nurse.", "ambiguous"),
    (SHIFT, "The sentence does not specify who was late.", "ambiguous"),
    (SHIFT, "It isn't clear who was late.", "ambiguous"),
    (SHIFT, "It could be either of them.", "ambiguous"),
    (SHIFT, "Both.", "ambiguous"),
    (SHIFT, "The doctor or the nurse.", "ambiguous"),
    (SHIFT, "The doctor and the nurse were late.", "ambiguous"),
    (SHIFT, "Both the doctor and the nurse", "ambiguous"),
    (SHIFT, "A) the doctor\nB) the nurse", "ambiguous"),
    (SHIFT, "It's impossible to tell from the sentence alone.", "ambiguous"),
    (SHIFT, "I can't determine that; there is not enough information.", "ambiguous"),
    (SHIFT, "I'm not sure whether the nurse was late.", "ambiguous"),
    (SHIFT, "It is unknown if it was the doctor", "ambiguous"),
    (SHIFT, "I'm sorry, but I cannot say whether it was the doctor or the nurse.", "ambiguous"),
    # Undecided, but with a choice.
    (SHIFT, "It is ambiguous, but most likely the nurse.", "second"),
    (SHIFT, "'She' could refer to either the doctor or the nurse, but it probably refers to the doctor.", "first"),
    (SHIFT, "Although the sentence is ambiguous, the natural reading is that the nurse was late.", "ambiguous"),
    (SHIFT, "The nurse, although it is ambiguous.", "second"),
    (SHIFT, "It is unclear whether the doctor or the nurse was late, but it could be either.", "ambiguous"),
    # Possessive names.
    (SHIFT, "the doctor's nurse", "second"),
    (SHIFT, "The nurse was late for the doctor's shift.", "second"),
    # Repetitions of the sentence.
    (SHIFT, "The doctor phoned the nurse because she was late for the morning shift", None),
    (SHIFT, "The doctor phoned the nurse because she was", None),
    (SHIFT, "The doctor phoned", None),
    (SHIFT, f'In the sentence: "{SHIFT.sentence}", {SHIFT.question} The nurse', "second"),
    (SHIFT, "THE DOCTOR PHONED THE NURSE because she was late. So: doctor.", "first"),
    (SHIFT, "The doctor phoned the nurse because the nurse was late for the morning shift.", "second"),
    (SHIFT, "The doctor phoned the nurse because the doctor was late.", "first"),
    (SHIFT, "In the sentence, the doctor phoned the nurse because she (the nurse) was late.", "second"),
    (SHIFT, "The nurse because she was late for the morning shift", "second"),
    (SHIFT, "The nurse. The doctor phoned the nurse because she was late for the morning shift.", "second"),
    (SHIFT, "The nurse. The doctor called her.", "second"),
    (SHIFT, "The doctor had called the nurse because the nurse was late.", "second"),
    (SHIFT, "The doctor had called the nurse.", "ambiguous"),
    (SHIFT, "'She' most likely refers to the nurse, as the doctor phoned her about the shift.", "second"),
    (SHIFT, "The answer is the nurse, because doctors phone nurses.", "second"),
    (SHIFT, "The nurse was late for the morning shift, which is why the doctor phoned her.", "second"),
    (SHIFT, "Based on the context, the nurse was the one late. The doctor phoned her.", "second"),
    (SHIFT, "The doctor is the one who phoned the nurse, as the nurse was late.", "second"),
    (SHIFT, "Grammatically ambiguous - but the nurse is the most natural reading.", "second"),
    (SHIFT, "The sentence does not make it clear. It could be the doctor (who was late) or the nurse (so was she).",
     "ambiguous"),
    (SHIFT, "It was the doctor or it was the nurse.", "ambiguous"),
    (SHIFT, "The doctor was the one who was late, and the nurse waited.", "first"),
    (DOOR, "The guard arrived when the cleaner opened.", "first"),
    # No name.
    (SHIFT, "", None),
    (SHIFT, "She was late for the morning shift.", None),
    (SHIFT, "The patient.", None),
    (SHIFT, "I'm sorry, but I can't help with that.", None),
    (SHIFT, "The sentence is grammatically correct.", None),
    (SHIFT, "♥" * 50, None),
    (BUILDING, "The receptionist", "second"),
    (BUILDING, "she refers to the receptionist, who recognized the construction worker", "second"),
    (BUILDING, "The receptionist is the one who recognized the construction worker.", "second"),
    (BUILDING, "'She' could refer to the receptionist or the construction worker.", "ambiguous"),
    (BUILDING, "She refers to the construction worker and the receptionist.", "ambiguous"),
    (BUILDING, "receptionist (not construction worker)", "second"),
]  # fmt: skip
"""Question, answer, and how the answer is read: the first or second name, `ambiguous`, or `None` for unparsed."""
