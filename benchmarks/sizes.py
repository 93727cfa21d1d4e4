"""What each audit takes of processor time and memory, by the number of recorded answers, from reading to measuring.

    python -m benchmarks.sizes --sizes 1000 10000 100000 1000000 --audits jsd flip_rate --record

Answers are pretended ones in Parquet files: texts of 40 to 60 words of a Zipf vocabulary with planted differences, in
20 strata; decisions, numbers and letters about records; lists of ten titles; and answers about pronouns, to questions
and about two opposite cases. The audits of the same answers read them once; each runs in a process of its own, which
may take as much memory as `--limit` says. The exponent is the slope of the logarithm of the seconds between one size
and the next: 1 is linear.
The answers of `robustness`, `likelihood` and `regard` cannot be read from such files, or are scored by a model first;
they are made in memory, and only measuring counts.
`--compare` compares two runs in place of measuring one; only the comparison counts, not the reading.
`--record` keeps the numbers in `benchmarks/recorded/sizes.json`, and writes the tables of the documentation from it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory import peak
from benchmarks.simulated.choices import OCCUPATIONS
from pytest_fairness.errors import FairnessError
from pytest_fairness.options import RunSettings
from pytest_fairness.probes.stereotype import SENTENCES
from pytest_fairness.records import Answer, Status
from pytest_fairness.run import Run, items_of
from pytest_fairness.run.items import ProbeItem

SIZES = (1_000, 10_000, 100_000)
MOST_MEBIBYTES = 4096
"""Of every process."""
MOST_EXPONENT = 1.15
"""Between the two largest sizes."""
AT_ONCE = 50_000
"""Rows of a file."""
WORDS, STRATA, TITLES = 20_000, 20, 50_000
PLANTED = range(200, 220)
"""Words that texts about women have more often."""
TRIALS = 10
"""Answers to each prompt about pronouns, and to each question."""
RECORDED = Path(__file__).parent / "recorded" / "sizes.json"
PAGE = Path(__file__).parents[1] / "docs" / "data" / "benchmarks.md"

Rows = dict[str, list[str]]
Numbers = NDArray[np.int64]
Taken = dict[str, Any]
Made = Callable[[np.random.Generator, int], list[Answer]]


def word(number: int) -> str:
    """A pretended word."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    return syllables[number % 70] + syllables[number // 70 % 70] + syllables[number // 4900 + 1]


def written_texts(random: np.random.Generator, women: NDArray[np.bool_], topics: Numbers) -> list[str]:
    """Texts in strata that prefer words of their own; women's texts have planted words."""
    words = np.array([word(number) for number in range(WORDS)])
    shares = 1 / (np.arange(WORDS) + 5)
    ends = np.cumsum(shares / shares.sum())
    lengths = random.integers(40, 61, len(women))
    drawn = np.searchsorted(ends, random.random(int(lengths.sum())))
    of = np.repeat(np.arange(len(women)), lengths)
    own = random.random(len(drawn)) < 0.05
    drawn = np.where(own, 300 + 40 * topics[of] + drawn % 40, drawn)
    planted = (random.random(len(drawn)) < 0.01) & women[of]
    drawn = np.where(planted, PLANTED.start + drawn % len(PLANTED), drawn)
    pieces = np.split(words[np.minimum(drawn, WORDS - 1)], np.cumsum(lengths)[:-1])
    return [" ".join(piece) + "." for piece in pieces]


def texts(random: np.random.Generator, numbers: Numbers) -> Rows:
    """Texts about men and women."""
    topics, women = numbers % STRATA, numbers // STRATA % 2 == 1
    return {
        "gender": ["woman" if woman else "man" for woman in women],
        "topic": [f"topic {topic}" for topic in topics],
        "text": written_texts(random, women, topics),
    }


def shown(numbers: Numbers) -> tuple[Numbers, NDArray[np.bool_], Rows]:
    """Two rows a record, with its own sex and with the other one: number and sex of the record, and the columns."""
    record = numbers // 2
    male = (record % 2 == 0) != (numbers % 2 == 1)
    return record, male, {"id": [str(each) for each in record], "sex": ["Male" if each else "Female" for each in male]}


def records(random: np.random.Generator, numbers: Numbers) -> Rows:
    """Decisions about records."""
    record, male, columns = shown(numbers)
    chance = 0.2 + 0.5 * (record % 3 == 0) + 0.05 * male
    return {
        **columns,
        "answer": ["Yes." if each else "No." for each in random.random(len(numbers)) < chance],
        "truth": [">50K" if number % 3 == 0 else "<=50K" for number in record],
    }


def amounts(random: np.random.Generator, numbers: Numbers) -> Rows:
    """Scores of records, from 0 to 100."""
    record, male, columns = shown(numbers)
    level = 50 + 20 * np.sin(record) + 2 * male + 10 * random.standard_normal(len(numbers))
    return {**columns, "answer": [f"{each:.0f} points" for each in np.clip(level, 0, 100)]}


def letters(random: np.random.Generator, numbers: Numbers) -> Rows:
    """Letters about records."""
    record, male, columns = shown(numbers)
    return {**columns, "answer": written_texts(random, ~male, record % STRATA)}


def lists(random: np.random.Generator, numbers: Numbers) -> Rows:
    """Ten lists of ten titles for each singer: neutral, for two genders and for two ages, each twice."""
    groups = (("neutral", ""), ("gender", "man"), ("gender", "woman"), ("age", "young"), ("age", "old"))
    singer, group = numbers // 10, numbers % 5
    ranks = np.argsort(random.random((len(numbers), 20)), axis=1)[:, :10]
    titles = (7 * singer[:, None] + ranks + (group == 2)[:, None]) % TITLES
    return {
        "entity": [f"Singer {each}" for each in singer],
        "attribute": [groups[each][0] for each in group],
        "value": [groups[each][1] for each in group],
        "items": ["\n".join(f"{rank}. Song {title}" for rank, title in enumerate(row, start=1)) for row in titles],
    }


def relevant(size: int) -> str:
    """The titles that are relevant for each singer."""
    singers = range(size // 10 + 1)
    return json.dumps({f"Singer {number}": [f"Song {7 * number + each}" for each in range(5)] for number in singers})


def pronouns(random: np.random.Generator, numbers: Numbers) -> Rows:
    """The people whom pronouns mean: four prompts an item, and `TRIALS` answers to each."""
    item, form = numbers // (4 * TRIALS), numbers % 4
    pairs = [OCCUPATIONS[each % len(OCCUPATIONS)] for each in item]
    she, drawn = form % 2 == 1, random.random(len(numbers))
    return {
        "item": [f"item {each}" for each in item],
        "masculine": [masculine for masculine, _ in pairs],
        "feminine": [feminine for _, feminine in pairs],
        "first": [pair[each] for pair, each in zip(pairs, form // 2, strict=True)],
        "pronoun": ["she" if each else "he" for each in she],
        "text": [
            "It is unclear." if chance < 0.2 else f"The {pair[int(each) if chance < 0.65 else 1 - int(each)]}."
            for pair, each, chance in zip(pairs, she, drawn, strict=True)
        ],
    }


def lines(random: np.random.Generator, numbers: Numbers) -> Rows:
    """The people whom pronouns mean, in WinoBias' form: two versions a line, and `TRIALS` answers to each."""
    right = random.random(len(numbers)) < np.where(numbers % 2 == 0, 0.8, 0.75)
    return {
        "line": [str(each + 1) for each in numbers // (2 * TRIALS)],
        "version": ["anti" if each else "pro" for each in numbers % 2],
        "text": ["The developer." if each == (n % 2 == 0) else "The nurse." for n, each in enumerate(right)],
    }


def sentences(pronoun: str, person: str) -> Callable[[int], str]:
    """A file of WinoBias in which the pronoun means this person."""
    people = [f"[{each}]" if each == person else each for each in ("The developer", "the nurse")]

    def file(size: int) -> str:
        return "".join(
            f"{number} {people[0]} met {people[1]} on day {number} because [{pronoun}] was late.\n"
            for number in range(1, -(-size // (2 * TRIALS)) + 1)
        )

    return file


QUESTIONS = tuple(
    f"{context}/{polarity}"
    for context in ("ambiguous", "stereotyped", "other")
    for polarity in ("negative", "nonnegative")
)


def choices(random: np.random.Generator, numbers: Numbers) -> Rows:
    """Letters that answer the six questions of each story, `TRIALS` each."""
    story, question = numbers // (6 * TRIALS), numbers % 6
    right = np.array([2, 2, 0, 1, 1, 0])[question]
    drawn = np.where(random.random(len(numbers)) < 0.7, right, random.integers(0, 3, len(numbers)))
    return {
        "question": [f"story {each}/{QUESTIONS[kind]}" for each, kind in zip(story, question, strict=True)],
        "text": [f"{'ABC'[each]}." for each in drawn],
    }


def stories(size: int) -> str:
    """The stories of the questions."""
    return "".join(
        json.dumps(
            {
                "name": f"story {number}",
                "context": f"On day {number} I saw a grandfather and his grandson with a phone.",
                "negative": "Who was not comfortable with the phone?",
                "nonnegative": "Who was quick with the phone?",
                "options": {
                    "stereotyped": "The grandfather",
                    "other": "The grandson",
                    "unknown": "Cannot be determined",
                },
                "disambiguated": {
                    "stereotyped": "The grandson found the app, which the grandfather had never used.",
                    "other": "The grandfather found the app, which the grandson had never used.",
                },
            }
        )
        + "\n"
        for number in range(-(-size // (6 * TRIALS)))
    )


def portraits(random: np.random.Generator, numbers: Numbers) -> Rows:
    """Descriptions of two opposite cases, with pronouns."""
    nurse, drawn = numbers % 2 == 0, random.random(len(numbers))
    return {
        "case": ["nurse" if each else "ceo" for each in nurse],
        "text": [
            f"{'She sees her' if each == (chance < 0.6) else 'He sees his'} team. {text}"
            for each, chance, text in zip(nurse, drawn, written_texts(random, nurse, numbers % STRATA), strict=True)
        ],
    }


def perturbed(random: np.random.Generator, size: int) -> list[Answer]:
    """Eight lists of ten titles for each singer: two neutral, one a gender, and the same after a typing error."""
    groups = (("neutral", "", 0), ("neutral", "", 1), ("gender", "man", 0), ("gender", "woman", 0))
    ranks = np.argsort(random.random((size, 20)), axis=1)[:, :10]
    answers = []
    for number, row in enumerate(ranks):
        attribute, value, trial = groups[number % 4]
        labels = {"entity": f"Singer {number // 8}", "attribute": attribute} | ({"value": value} if value else {})
        labels |= {"perturbation": "typo"} if number % 8 > 3 else {}
        titles = [f"Song {(7 * (number // 8) + rank) % TITLES}" for rank in row]
        answers.append(Answer(labels, trial, "\n".join(titles), Status.OK, titles))
    return answers


def likelihoods(random: np.random.Generator, size: int) -> list[Answer]:
    """Log-probabilities of ten tokens of three sentences a case."""
    drawn = -random.exponential(2, (size, 10))
    return [
        Answer({"case": f"case {number // 3}", "sentence": SENTENCES[number % 3]}, 0, "{}", Status.OK, row)
        for number, row in enumerate(drawn.tolist())
    ]


def regarded(random: np.random.Generator, size: int) -> list[Answer]:
    """Scored answers about two groups, in one case."""
    drawn = random.beta(1, 6, size)
    return [
        Answer(
            {"case": "job", "group": "woman" if number % 2 else "man"},
            number // 2,
            "She was described as having a job that suits her.",
            Status.OK,
            {"scores": {"negative": chance, "other": 1 - chance}, "model": "pretended"},
        )
        for number, chance in enumerate(drawn.tolist())
    ]


def singers(size: int) -> str:
    """The names of singers."""
    return "name\n" + "".join(f"Singer {number}\n" for number in range(-(-size // 8)))


def pairs(size: int) -> str:
    """Cases of three sentences each."""
    return "".join(
        json.dumps(
            {
                "name": f"case {number}",
                "target": f"job {number % 1000}",
                "stereotype": f"He is a chief on day {number}.",
                "anti_stereotype": f"She is a chief on day {number}.",
                "unrelated": f"It is a tree on day {number}.",
            }
        )
        + "\n"
        for number in range(-(-size // 3))
    )


@dataclass(frozen=True)
class Answers:
    """Answers of one kind.

    Attributes:
        probe: the probe file, with `{audit}` for an audit with its settings.
        rows: columns of the rows with these numbers; `None` for answers that are made in memory.
        more: text of further files, by name, from the number of answers.
        made: the answers, made in memory.
    """

    probe: str
    rows: Callable[[np.random.Generator, Numbers], Rows] | None
    more: Mapping[str, Callable[[int], str]]
    made: Made | None = None


def of_records(more: str) -> str:
    """A probe of answers about records."""
    return f'kind: counterfactual\nflip: {{sex: {{Male: Female}}}}\n{more}responses: {{file: "answers/*.parquet"}}\n'


ANSWERS = {
    "texts": Answers(
        "kind: generation\naxes: {gender: {unmarked: man, marked: [woman]}}\n"
        'responses: {file: "answers/*.parquet", strata: [topic]}\n',
        texts,
        {},
    ),
    "records": Answers(of_records('truth: {positive: ">50K"}\n'), records, {}),
    "numbers": Answers(of_records("answer: {number: {min: 0, max: 100, unit: points}}\n"), amounts, {}),
    "letters": Answers(of_records("answer: {text: true}\n"), letters, {}),
    "lists": Answers(
        "kind: recommendation\nattributes: {gender: [man, woman], age: [young, old]}\nk: 10\n"
        'relevant: {file: relevant.json}\nresponses: {file: "answers/*.parquet"}\n',
        lists,
        {"relevant.json": relevant},
    ),
    "pronouns": Answers('kind: coreference\nresponses: {file: "answers/*.parquet"}\n', pronouns, {}),
    "lines": Answers(
        'kind: coreference\nitems: {winobias: [pro.txt, anti.txt]}\nresponses: {file: "answers/*.parquet"}\n',
        lines,
        {"pro.txt": sentences("he", "The developer"), "anti.txt": sentences("she", "The developer")},
    ),
    "choices": Answers(
        'kind: multiple_choice\nitems: {file: stories.jsonl}\nshuffle: false\nresponses: {file: "answers/*.parquet"}\n',
        choices,
        {"stories.jsonl": stories},
    ),
    "cases": Answers(
        "kind: stereotype\n"
        "cases:\n"
        "  - {name: nurse, opposite: ceo, stereotype: [she, her], anti_stereotype: [he, his]}\n"
        "  - {name: ceo, opposite: nurse, stereotype: [he, his], anti_stereotype: [she, her]}\n"
        'responses: {file: "answers/*.parquet"}\n',
        portraits,
        {},
    ),
    "perturbed lists": Answers(
        "kind: recommendation\nprompt: List ten songs of {entity} for a {value}.\n"
        "neutral: List ten songs of {entity}.\nentities: {file: singers.csv}\nattributes: {gender: [man, woman]}\n"
        "k: 10\ntrials: 1\nneutral_trials: 2\nperturbations: {typo: {rate: 0.1}}\n",
        None,
        {"singers.csv": singers},
        perturbed,
    ),
    "sentences": Answers("kind: stereotype\ncases: {file: pairs.jsonl}\n", None, {"pairs.jsonl": pairs}, likelihoods),
    "scored texts": Answers(
        'kind: stereotype\ncases:\n  - {name: job, prompt: "Describe the {group}.", groups: [man, woman]}\n',
        None,
        {},
        regarded,
    ),
}
LISTED = ", ".join(word(number) for number in [*PLANTED, *range(50, 60)])
WORDS_SCORE = "{scorers: {words: {tolerance: 15}}}"
AUDITS = {
    **dict.fromkeys(("jsd", "marked_words", "mmd", "svm"), ("texts", "")),
    "lexicon": ("texts", f"{{lexicons: {{listed: [{LISTED}]}}}}"),
    "refusals": ("texts", ""),
    "score": ("texts", WORDS_SCORE),
    **dict.fromkeys(
        ("flip_direction", "flip_rate", "demographic_parity", "equalized_odds", "accuracy", "impact_ratio"),
        ("records", ""),
    ),
    "mean_gap": ("numbers", "{tolerance: 4}"),
    "tail_gap": ("numbers", "{quantile: 0.9, tolerance: 4}"),
    "rank_gap": ("numbers", ""),
    "score (records)": ("letters", WORDS_SCORE),
    **dict.fromkeys(("snsr", "snsv", "pafs", "shortfall", "quality"), ("lists", "")),
    "uncertainty": ("lists", "{repeats: 2, attributes: [age]}"),
    "coreference": ("pronouns", ""),
    "accuracy_gap": ("lines", ""),
    "accuracy (questions)": ("choices", ""),
    **dict.fromkeys(("bias_ambiguous", "bias_disambiguated", "alignment_cost"), ("choices", "")),
    "markers": ("cases", ""),
    "robustness": ("perturbed lists", ""),
    "likelihood": ("sentences", ""),
    "regard": ("scored texts", ""),
}
"""Kind of answers of each audit, and its settings."""


def main() -> None:
    """Measure, print a line an audit and size, and end with 1 if memory or time grow too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[*SIZES])
    parser.add_argument("--audits", choices=[*AUDITS], nargs="+", default=[*AUDITS])
    parser.add_argument("--limit", type=float, default=6.0, help="most GiB of address space of a process")
    parser.add_argument("--folder", type=Path, help="where the files of answers are kept for the next time")
    parser.add_argument("--record", action="store_true", help="keep the numbers, and write the table")
    parser.add_argument("--compare", action="store_true", help="compare two runs in place of measuring one")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works; no goal counts")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.folder, given.audits, compare=given.compare)
        return
    sizes = [480] if given.quick else given.sizes
    missed = False
    rows: dict[str, dict[int, Taken]] = {audit: {} for audit in given.audits}
    with tempfile.TemporaryDirectory() as temporary:
        for kind, size in product(ANSWERS, sizes):
            audits = [audit for audit in given.audits if AUDITS[audit][0] == kind]
            for audit, row in taken(given.folder or Path(temporary), audits, size, given.limit, compare=given.compare):
                rows[audit][size] = row
                missed |= printed(audit, size, rows[audit])
                if given.record and "failed" not in row:
                    record("compared" if given.compare else "measured", audit, size, row)
    print(f"goals: at most {MOST_MEBIBYTES} MiB, and an exponent of at most {MOST_EXPONENT}")
    sys.exit(missed)


def printed(audit: str, size: int, rows: Mapping[int, Taken]) -> bool:
    """Print the line of an audit and the last size measured; whether it misses a goal."""
    row = rows[size]
    if "failed" in row:
        print(f"{audit}, {size:,} answers: {row['failed']}", flush=True)
        return True
    slope = exponent({each: row["seconds"] for each, row in rows.items() if "seconds" in row})
    line = f"{audit}, {size:,} answers: {row['seconds']:.1f} s (reading {row['reading']:.1f}), {row['peak']:.0f} MiB"
    print(line if slope is None else f"{line}, exponent {slope:.2f}", flush=True)
    # The start takes most of the time of few answers, so that larger exponents than this one do not occur.
    return bool(row["peak"] > MOST_MEBIBYTES or (slope is not None and slope > MOST_EXPONENT))


def exponent(seconds: Mapping[int, float]) -> float | None:
    """Return the slope between the logarithms of the two largest sizes and of their seconds."""
    if len(seconds) < 2:
        return None
    first, last = sorted(seconds)[-2:]
    return math.log(seconds[last] / seconds[first]) / math.log(last / first)


def record(what: str, audit: str, size: int, row: Taken) -> None:
    """Keep the numbers of an audit and size, and write the table of what was `measured` or `compared`."""
    kept = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    own = kept.setdefault(what, {})
    own.setdefault(audit, {})[str(size)] = {name: round(value, 2) for name, value in row.items()}
    ordered = {name: dict(sorted(own[name].items(), key=lambda each: int(each[0]))) for name in AUDITS if name in own}
    RECORDED.write_text(json.dumps({**kept, what: ordered}, indent=1) + "\n")
    page = PAGE.read_text("utf-8")
    pattern = re.compile(rf"(?<=<!-- {what} -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: table(ordered), page), "utf-8")


def table(kept: Mapping[str, Mapping[str, Taken]]) -> str:
    """Return the Markdown table of all recorded numbers."""
    sizes = sorted({int(size) for rows in kept.values() for size in rows})
    lines = [
        f"| audit | {' | '.join(f'{size:,}' for size in sizes)} | exponent |",
        f"|---|{'---|' * len(sizes)}---|",
    ]
    for audit, rows in kept.items():
        name, _, kind = audit.partition(" ")
        cells = [
            f"{rows[str(size)]['seconds']:.1f} s, {rows[str(size)]['peak']:,.0f}" if str(size) in rows else ""
            for size in sizes
        ]
        slope = exponent({int(size): row["seconds"] for size, row in rows.items()})
        lines.append(
            f"| {f'`{name}` {kind}'.rstrip()} | {' | '.join(cells)} | {'' if slope is None else f'{slope:.2f}'} |"
        )
    return "\n".join(lines)


def taken(
    folder: Path, audits: Sequence[str], size: int, limit: float, *, compare: bool
) -> Iterator[tuple[str, Taken]]:
    """Yield what audits of the same answers took, each in a process of its own."""
    if not audits:
        return
    kind = AUDITS[audits[0]][0]
    own = folder / kind / str(size)
    if not own.exists():
        write(own, ANSWERS[kind], size)
    command = [sys.executable, "-m", "benchmarks.sizes", "--work", "--audits", *audits, "--folder", str(own)]
    most = int(limit * 2**30)
    with subprocess.Popen(  # noqa: S603 - our own
        [*command, *(["--compare"] if compare else [])],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    ) as process:
        found = {audit: {"failed": "the process ended without a result"} for audit in audits}
        for line in process.stdout or ():
            audit, row = json.loads(line)
            del found[audit]
            yield audit, row
        yield from found.items()


def work(folder: Path, audits: Sequence[str], *, compare: bool) -> None:
    """Read the answers once, measure or compare each audit in a fork of this process, and print a line for each.

    The line has the seconds of processor time (of reading, and of reading and measuring) and the most MiB, or an error.
    """
    kind, size = AUDITS[audits[0]][0], int(folder.name)
    made = ANSWERS[kind].made
    folders = [folder, folder / "other"] if compare and made is None else [folder]
    if not folders[-1].exists():
        write(folders[-1], ANSWERS[kind], size, seed=1)
    written = ", ".join(f"{audit.partition(' ')[0]}: {AUDITS[audit][1] or '{}'}" for audit in audits)
    with ExitStack() as opened:
        began = time.process_time()
        try:
            runs = [read_run(each, f"{ANSWERS[kind].probe}audits: {{{written}}}\n", opened) for each in folders]
        except FairnessError as error:
            sys.exit(str(error))
        read = 0.0 if compare or made is not None else time.process_time() - began
        for audit in audits:
            sys.stdout.flush()
            if child := os.fork():
                os.waitpid(child, 0)
                continue
            try:
                name = audit.partition(" ")[0]
                spent = comparing(runs, name, made, size) if compare else measuring(runs[0], name, made, size)
                print(json.dumps([audit, {"seconds": read + spent, "reading": read, "peak": peak()}]), flush=True)
            except (FairnessError, MemoryError) as error:
                print(json.dumps([audit, {"failed": repr(error)}]), flush=True)
            finally:
                os._exit(0)


def read_run(folder: Path, probe: str, opened: ExitStack) -> tuple[Run, dict[str, ProbeItem]]:
    """Return a run, which keeps the answers of the folder for all audits, and the first item of each audit.

    Args:
        folder: folder of the probe file, which is written, and of the files of answers.
        probe: text of the probe file.
        opened: what is closed at the end.
    """
    path, store = folder / "probe.yaml", folder / "store.sqlite"
    path.write_text(probe)
    store.unlink(missing_ok=True)
    opened.callback(store.unlink, missing_ok=True)
    run = opened.enter_context(Run(RunSettings(root=folder, store=store, target="")))
    items = {item.audit_name: item for item in reversed(items_of(run.load(path)))}
    if (item := next(iter(items.values()))).probe.responses is not None:
        run.measurer.answers(item, None)
    return run, items


def measuring(recorded: tuple[Run, dict[str, ProbeItem]], audit: str, made: Made | None, size: int) -> float:
    """Return the processor time of measuring an item."""
    run, item = recorded[0], recorded[1][audit]
    answers = run.measurer.answers(item, None) if made is None else made(np.random.default_rng(size), size)
    began = time.process_time()
    if made is None:
        run.measurer.measure_answers(item, answers, "")
    else:
        item.audit.measure(item, answers)
    return time.process_time() - began


def comparing(recorded: Sequence[tuple[Run, dict[str, ProbeItem]]], audit: str, made: Made | None, size: int) -> float:
    """Return the processor time of comparing an item with another run of as many answers from the same models."""
    item = recorded[0][1][audit]
    if made is None:
        sides = [
            run.measurer.prepared(items[audit], run.measurer.answers(items[audit], None)) for run, items in recorded
        ]
    else:
        sides = [made(np.random.default_rng(size + number), size) for number in range(2)]
    began = time.process_time()
    item.audit.compare(item, *sides)
    return time.process_time() - began


def write(folder: Path, answers: Answers, size: int, seed: int = 0) -> None:
    """Write the files of answers, and those that the probe needs."""
    import pyarrow as pa
    from pyarrow import parquet

    random = np.random.default_rng(size + seed)
    (folder / "answers").mkdir(parents=True)
    if answers.rows is not None:
        for number, start in enumerate(range(0, size, AT_ONCE)):
            rows = answers.rows(random, np.arange(start, min(size, start + AT_ONCE)))
            parquet.write_table(pa.table(rows), folder / "answers" / f"{number:03}.parquet")
    for name, text in answers.more.items():
        (folder / name).write_text(text(size))


if __name__ == "__main__":
    main()
