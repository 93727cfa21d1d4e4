"""What each audit measures, in a few lines for whoever reads a report: formula, direction, source.

The audits' own pages in `docs/` say more. An audit that is not in this table is reported all the same, without a note.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """One audit in a few lines.

    Attributes:
        question: what it answers.
        formula: how the value comes about.
        meaning: how to read the number.
        source: where the method comes from.
        better: which values are better: `lower`, `higher`, `zero` or `fifty`; empty where the tolerance is no distance
            between values.
        unit: of the value; empty for a share or a score.
    """

    question: str
    formula: str
    meaning: str
    source: str
    better: str
    unit: str = ""


_LISTS = "Zhang, Bao, Zhang, Wang, Feng and He 2023, “Is ChatGPT Fair for Recommendation?” (FaiRLLM)"
_ADULT = "Wang et al. 2023, “DecodingTrust”, and the fairness criteria of "

NOTES: dict[str, Note] = {
    "marked_words": Note(
        question="Which words does one group get that the other does not?",
        formula="δ = ln[(y₁ + α) / (n₁ + α₀ − y₁ − α)] − ln[(y₂ + α) / (n₂ + α₀ − y₂ − α)];  "
        "z = δ / √(1/(y₁ + α) + 1/(y₂ + α))",
        meaning="The number of words whose |z| is beyond the largest that relabelled documents give anywhere in the "
        "vocabulary. The tolerance is a number of words that may grow since the baseline, by the share of one group's "
        "texts that hold them less the share of the other's.",
        source="Monroe, Colaresi and Quinn 2008, “Fightin’ Words”; Cheng, Durmus and Jurafsky 2023, “Marked Personas”; "
        "Westfall and Young 1993 on testing many words at once",
        better="",
        unit="words",
    ),
    "svm": Note(
        question="Can a simple classifier tell from the answer which group asked?",
        formula="balanced accuracy = (share right of the marked + share right of the unmarked) / 2, each text left out "
        "of training;  change = logistic(log-odds now − log-odds before) − 0.5",
        meaning="0.5 is guessing, 1 is certainty. A change is given as that of an accuracy of 0.5 which is as large.",
        source="Cheng, Durmus and Jurafsky 2023, “Marked Personas”; Suykens and Vandewalle 1999, “Least Squares "
        "Support Vector Machine Classifiers”",
        better="lower",
    ),
    "jsd": Note(
        question="How different are the two vocabularies altogether?",
        formula="JSD = H((P + Q)/2) − (H(P) + H(Q))/2;  value = JSD − mean JSD of relabelled documents",
        meaning="Bits over chance: 0 is as different as chance makes two halves of one group. Differences that are "
        "opposite in two large strata do not cancel. The value grows with the number of answers.",
        source="Lin 1991; Gerlach, Font-Clos and Altmann 2016 on the bias of finite samples",
        better="lower",
        unit="bits",
    ),
    "mmd": Note(
        question="Do the two groups get texts of the same distribution?",
        formula="MMD² = mean k(x₁, x₂) + mean k(y₁, y₂) − 2 mean k(x, y), x₁ and x₂ different texts of one group, y₁ "
        "and y₂ of the other;  k = mean cosine of TF-IDF weights of words and of character n-grams",
        meaning="0 is alike, whatever the number of texts; chance may take it a little below. Differences that are "
        "opposite in two strata do not cancel.",
        source="Gretton, Borgwardt, Rasch, Schölkopf and Smola 2012, “A Kernel Two-Sample Test”",
        better="lower",
    ),
    "refusals": Note(
        question="Is one group answered less often?",
        formula="share refused or unusable of the marked − the same of the unmarked",
        meaning="−1 to 1; 0 is alike. Newcombe’s interval, Fisher’s exact test.",
        source="Newcombe 1998; Agresti and Caffo 2000",
        better="zero",
    ),
    "lexicon": Note(
        question="Do texts about one group use the words of a list more often?",
        formula="mean over strata of (mean rate of the marked − mean rate of the unmarked);  "
        "rate = 100 · occurrences of the terms in an answer / words of the answer",
        meaning="Occurrences per 100 words; 0 is alike, above 0 is more for the marked group. The odds ratio of all "
        "words together is told with an interval and a test by document.",
        source="Wan, Pu, Sun, Garimella, Chang and Peng 2023, “Kelly is a Warm Person, Joseph is a Role Model”; "
        "Welch 1947; Satterthwaite 1946",
        better="zero",
        unit="per 100 words",
    ),
    "snsr": Note(
        question="Do the lists of some values stay closer to the neutral list than those of others?",
        formula="SNSR = max Sim(value) − min Sim(value);  Sim = mean over entities of similarity(conditioned, neutral)",
        meaning="The range between the best and the worst served value; 0 is alike.",
        source=_LISTS,
        better="lower",
    ),
    "snsv": Note(
        question="How unevenly close to the neutral list are the values’ lists?",
        formula="SNSV = √(mean over values of (Sim(value) − mean Sim)²)",
        meaning="A standard deviation over the values; 0 is alike.",
        source=_LISTS,
        better="lower",
    ),
    "pafs": Note(
        question="How evenly close to the neutral list are the values’ lists?",
        formula="PAFS = 1 − mean over values of |Sim(value) − mean Sim|",
        meaning="1 is even. It stays near 1 for most systems: read the similarities too.",
        source="Sah, Lian, Xu and Zhang 2025, on personality-aware fairness",
        better="higher",
    ),
    "uncertainty": Note(
        question="How much do lists vary when the same question is asked again?",
        formula="mean over entities of H = −Σ p log₂ p",
        meaning="Bits; 0 is always the same list. Between values: the range of their means.",
        source="Shannon 1948",
        better="lower",
        unit="bits",
    ),
    "robustness": Note(
        question="Does a typo or a translation change the lists?",
        formula="mean over entities of similarity(list of the clean question, list of the perturbed one)",
        meaning="1 is no change; compare with the similarity of two neutral draws.",
        source=_LISTS,
        better="higher",
    ),
    "shortfall": Note(
        question="Does one value get shorter lists?",
        formula="max − min over values of (items asked − items returned) / items asked",
        meaning="A share; 0 is alike. Refusals count as nothing returned.",
        source="a gap of shares, Agresti and Caffo 2000",
        better="zero",
    ),
    "quality": Note(
        question="Does one value get less relevant lists?",
        formula="max − min over values of mean NDCG@k",
        meaning="A gap of scores between 0 and 1; 0 is alike.",
        source="Järvelin and Kekäläinen 2002",
        better="lower",
    ),
    "coreference": Note(
        question="Is a pronoun taken for whoever the stereotype says?",
        formula="(stereotypical − anti-stereotypical) / all answers but unparsed",
        meaning="−1 to 1; 0 is no preference. Above 0 follows the stereotype.",
        source="Zhao, Wang, Yatskar, Ordonez and Chang 2018 (WinoBias); Kotek, Dockum and Sun 2023; McNemar 1947",
        better="lower",
    ),
    "accuracy_gap": Note(
        question="Are sentences that agree with a stereotype solved better?",
        formula="accuracy on pro-stereotypical − accuracy on anti-stereotypical sentences",
        meaning="−1 to 1; 0 is alike.",
        source="Zhao, Wang, Yatskar, Ordonez and Chang 2018 (WinoBias)",
        better="zero",
    ),
    "flip_direction": Note(
        question="Does one value of an attribute get the positive answer more often, for the same records?",
        formula="P(positive | shown as A) − P(positive | shown as B), paired by record",
        meaning="−1 to 1; 0 is alike, also for a system that answers at random. Above 0 is in favour of A.",
        source="Kusner, Loftus, Russell and Silva 2017, “Counterfactual Fairness”; the paired sign-flip test of "
        "Fisher 1935",
        better="zero",
    ),
    "flip_rate": Note(
        question="Does the answer change when only one attribute of a record is flipped?",
        formula="share of records whose answer changes − share that changes when the same is asked again",
        meaning="0 is no more change than asking twice makes.",
        source="Kusner, Loftus, Russell and Silva 2017, “Counterfactual Fairness”; McNemar 1947",
        better="lower",
    ),
    "demographic_parity": Note(
        question="Does one group get the positive answer more often?",
        formula="|P(positive | group A) − P(positive | group B)|",
        meaning="0 is alike, whatever is true of the records.",
        source=_ADULT + "Dwork et al. 2012",
        better="lower",
    ),
    "equalized_odds": Note(
        question="Are right and wrong positive answers spread alike over groups?",
        formula="max(|gap of true positive rates|, |gap of false positive rates|)",
        meaning="0 is alike.",
        source=_ADULT + "Hardt, Price and Srebro 2016",
        better="lower",
    ),
    "accuracy": Note(
        question="Is one group judged wrongly more often?",
        formula="|accuracy for group A − accuracy for group B|",
        meaning="0 is alike.",
        source=_ADULT + "Hardt, Price and Srebro 2016",
        better="lower",
    ),
    "markers": Note(
        question="How often do the words of a stereotype turn up, against those of its opposite?",
        formula="mean over answers of stereotype markers / (stereotype + anti-stereotype markers)",
        meaning="0 to 1; 0.5 is balance. Answers with too few markers are left out and counted.",
        source="word lists of the probe; two cases that are opposites are averaged: one constant word gives 0.5",
        better="lower",
    ),
    "regard": Note(
        question="How negatively is somebody spoken of?",
        formula="mean probability of “negative”; between groups the paired difference",
        meaning="0 to 1, or −1 to 1 between groups; names of groups are masked.",
        source="Sheng, Chang, Natarajan and Peng 2019",
        better="lower",
    ),
    "likelihood": Note(
        question="Does the model itself find stereotypes likelier than their opposites?",
        formula="SS = 100 · share of cases in which the stereotype is likelier",
        meaning="50 is no preference.",
        source="Nadeem, Bethke and Reddy 2021 (StereoSet)",
        better="fifty",
        unit="%",
    ),
}
"""By name of the audit."""
