"""The terminal summary: content, order and width."""

import json
import subprocess
import sys
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.records import ItemResult, Json, Measurement, Verdict, VerdictName
from pytest_fairness.reports.formatting import cut, cut_ids, cut_middle, number, printable, width_of, wrap
from pytest_fairness.reports.report_items import accept_command
from pytest_fairness.reports.terminal import MOST_ROWS, WORST_ROWS, Line, failure_text, summary
from pytest_fairness.reports.view import views
from tests.support.results import DETAILS, EXAMPLE, explained, report, result

LONG = (
    "jsd[race=Black]: 0.0612 bits over chance, was 0.0178: worse by 0.0434, tolerance 0.02; significant (p < 0.001, "
    "alpha 0.01). Top contributors: hair, oil, braid."
)


JUDGED = [verdict for verdict in VerdictName if verdict is not VerdictName.MEASURED]


def lines_of(*results: ItemResult, width: int = 80, verbose: bool = False, **requests: int) -> list[Line]:
    return summary(report(*results, **requests), width, verbose=verbose)


def text_of(*results: ItemResult, width: int = 80, verbose: bool = False, **requests: int) -> str:
    return "\n".join(line.text for line in lines_of(*results, width=width, verbose=verbose, **requests))


def rows_of(*results: ItemResult, width: int = 80, verbose: bool = False) -> list[Line]:
    """Return the heading of the table and its rows, without the findings."""
    lines = lines_of(*results, width=width, verbose=verbose)
    start = next(number for number, line in enumerate(lines) if line.text.startswith("verdict "))
    table = lines[start : lines.index(Line(""), start)]
    return [line for line in table if not line.text.startswith("    ")]


def test_rounding_errors_are_shown_as_0() -> None:
    assert number(5.55e-17) == "0"
    assert number(0.000123) == "0.000123"


def test_a_run_without_items_has_no_summary() -> None:
    assert summary(report(), 80) == []


def test_the_heading_names_target_probes_and_counts() -> None:
    results = [result(verdict, value=f"v{number}") for number, verdict in enumerate(JUDGED)]
    lines = lines_of(*results, width=140)
    assert [line.text for line in lines[:2]] == [
        "openai:model · probes/products.yaml · 8 items",
        "! 2 errors, ✗ 1 regression, ✗ 1 over-limit, ! 1 stale, · 1 no-baseline, ? 1 inconclusive, ✓ 1 pass",
    ]
    assert text_of(*results, result(probe="letters")).startswith("openai:model · 2 probes · 9 items\n")


def test_a_long_path_of_a_probe_is_cut_and_not_broken() -> None:
    found = replace(result(), nodeid=f"probes/{'folder/' * 20}gifts.yaml::jsd[race=Black]")
    lines = [line.text for line in lines_of(found)]
    assert lines[1].strip().startswith("probes/folder/")
    assert lines[1].endswith("folder/gifts.yaml ·") or lines[1].endswith("folder/gifts.yaml")


def test_the_worst_verdict_is_first() -> None:
    rows = rows_of(*(result(verdict, value=f"v{number}") for number, verdict in enumerate(JUDGED)))
    assert [" ".join(row.text.split()[:2]) for row in rows[1:]] == [
        "! error",
        "! error",
        "✗ regression",
        "✗ over-limit",
        "! stale",
        "· no-baseline",
        "? inconclusive",
        "✓ pass",
    ]


def test_items_with_the_same_verdict_are_sorted_by_change_in_tolerances() -> None:
    weak = result(VerdictName.REGRESSION, value="weak", tolerance=1.0)
    strong = result(VerdictName.REGRESSION, value="strong", tolerance=0.001)
    assert [row.text.split()[-1] for row in rows_of(weak, strong)[1:]] == ["jsd[race=strong]", "jsd[race=weak]"]


def test_a_row_is_aligned_with_its_headings() -> None:
    header, row = (line.text for line in rows_of(result(VerdictName.REGRESSION)))
    assert row.split() == ["✗", "regression", "0.0612", "0.0178", "+0.0434", "±", "0.014", "0.02", "jsd[race=Black]"]
    assert row.index("+0.0434") == header.index("worse ± 95 %")
    assert row.index("0.02 ") == header.index("allowed")
    assert row.index("jsd") == header.index("item")
    assert row.index("0.0178") + len("0.0178") == header.index("baseline") + len("baseline")


def test_an_item_over_its_limit_shows_the_limit() -> None:
    assert "limit 0.05  jsd[race=Black]" in rows_of(result(VerdictName.OVER_LIMIT, limit=0.05))[1].text


def test_each_outcome_has_a_colour() -> None:
    rows = rows_of(*(result(verdict, value=verdict.value) for verdict in JUDGED), width=120)[1:]
    by_verdict = {row.text.split()[1]: dict(row.markup) for row in rows}
    assert by_verdict.pop("pass") == {"green": True}
    assert by_verdict.pop("inconclusive") == by_verdict.pop("no-baseline") == {"yellow": True}
    assert set(by_verdict) == {"error", "regression", "over-limit", "stale"}
    assert all(markup == {"red": True} for markup in by_verdict.values())


@pytest.mark.parametrize("width", [50, 60, 80, 81, 100, 120, 250])
@pytest.mark.parametrize(
    "value", ["Black", "Middle-Eastern", "a very long name of a group, as nobody writes it" * 3, "東京の人々" * 4]
)
def test_lines_fit_the_width_of_the_terminal(width: int, value: str) -> None:
    results = [
        result(verdict, audit=audit, value=value, reason=f"{audit}[race={value}]: {LONG}")
        for verdict in JUDGED
        for audit in DETAILS
    ]
    for shown in (results, results[: MOST_ROWS - 1]):
        lines = [line.text for line in lines_of(*shown, result(probe="letters"), width=width)]
        commands = next(number for number, line in enumerate(lines) if line.startswith("pytest --fairness-rebaseline"))
        assert max(width_of(line) for line in lines[:commands]) <= width


def test_a_long_name_is_cut_in_the_middle_and_whole_with_v() -> None:
    long = result(VerdictName.REGRESSION, audit="marked_words", value="Middle-Eastern grandmother")
    assert rows_of(long)[1].text.endswith(" marked_words[Middle-Eas…andmother]")
    assert rows_of(long, verbose=True)[1].text.endswith(" marked_words[race=Middle-Eastern grandmother]")
    assert rows_of(long, result(probe="letters"))[1].text.endswith(" pro…::marked_words[Middle-…mother]")


def test_the_finding_of_an_item_is_below_its_row_once() -> None:
    failed = result(VerdictName.REGRESSION, reason=LONG)
    failed = replace(failed, verdict=replace(failed.verdict, contributors=("hair", "oil")))
    for verbose in (False, True):
        text = text_of(failed, verbose=verbose)
        assert text.count("Black vs White: worse by 0.0434 bits (allowed 0.02): hair, oil") == 1
        assert "significant (p < 0.001" not in text, "pytest's own section has the reason with -v"


def test_the_failure_text_names_the_top_contributors() -> None:
    text = failure_text(views(report(result(VerdictName.REGRESSION, reason=LONG)))[0])
    assert " ".join(text.split()).count(LONG) == 1
    assert "used more for Black (bits): hair 0.0123, oil 0.0081" in text
    assert "used more for White (bits): tie 0.0101" in text
    assert f"Black: “{EXAMPLE}”" in " ".join(text.split())
    assert "no usable answer: Black 0 of 45, White 1 of 45" in text
    assert "typical of Black: hair, oil" in failure_text(views(report(result(VerdictName.OVER_LIMIT, audit="svm")))[0])
    words = failure_text(views(report(result(VerdictName.REGRESSION, audit="marked_words")))[0])
    assert "used more for Black: hair (z 6.12, uses 41 against 3)" in words
    assert "used more for White: tie (z -4.5, uses 22 against 1)" in words
    assert "nice" not in words


def test_words_that_grew_replace_significant_words() -> None:
    grown = [
        {"word": "braid", "growth": 0.5, "marked": [0.1, 0.6], "unmarked": [0.0, 0.0], "side": "marked"},
        {"word": "oil"},
        {"word": "comb", "growth": 0.4, "marked": [0.1, 0.5], "unmarked": [0.0, 0.0], "side": "marked"},
        {"word": "suit", "growth": 0.3, "marked": [0.0, 0.1], "unmarked": [0.0, 0.4], "side": "unmarked"},
    ]
    details = {**DETAILS["marked_words"], "grown": grown}
    measurement = Measurement(2.0, None, None, None, {"Black": 45, "White": 45}, {}, details)
    failed = result(VerdictName.REGRESSION, audit="marked_words", measurement=measurement)
    text = " ".join(failure_text(views(report(failed))[0]).split())
    assert (
        "used more for Black since the baseline: braid (10% → 60% of this group's texts, 0% → 0% of the other group's "
        "texts), oil, comb (10% → 50%, 0% → 0%)" in text
    )
    assert (
        "used more for the unmarked group (White) since the baseline: suit (0% → 40% of this group's texts, 0% → 10% "
        "of the other" in text
    )
    assert "hair" not in text


def test_refusals_are_counted_by_group() -> None:
    details = {"refused": {"Black": 12, "White": 1}, "unreadable": {"Black": 0, "White": 0}}
    measurement = Measurement(0.25, None, None, None, {"Black": 45, "White": 44}, {"Black": 0, "White": 1}, details)
    failed = result(VerdictName.REGRESSION, audit="refusals", measurement=measurement)
    text = failure_text(views(report(failed))[0])
    assert "  refused: Black 12 of 45, White 1 of 45\n" in text
    assert text.endswith("  no usable answer: Black 0 of 45, White 1 of 45")
    assert "unreadable" not in text


def test_items_without_baseline_share_one_command() -> None:
    new = [result(VerdictName.NO_BASELINE, value=f"v{i}", reason="Make a baseline: pytest x") for i in range(12)]
    text = text_of(*new)
    assert "12 items have no baseline and no limit. To record the values as the baseline:" in " ".join(text.split())
    assert text.splitlines()[-1] == "pytest --fairness-rebaseline probes/products.yaml"
    assert text.count("To record") == text.count("pytest") == 1
    assert "To accept" not in text


def test_new_items_and_failures_have_a_command_each() -> None:
    text = text_of(result(VerdictName.NO_BASELINE, value="new"), result(VerdictName.REGRESSION))
    assert text.count("pytest --fairness-rebaseline 'probes/products.yaml::jsd[race=new]'") == 1
    assert text.endswith("pytest --fairness-rebaseline 'probes/products.yaml::jsd[race=Black]'")


def test_what_speaks_against_a_first_baseline_is_below_its_row() -> None:
    doubtful = result(VerdictName.NO_BASELINE)
    doubtful = replace(doubtful, verdict=replace(doubtful.verdict, undecided="40% of the answers are missing"))
    assert "no baseline and no limit; 40% of the answers are missing" in " ".join(text_of(doubtful).split())
    assert "    Black vs White" not in text_of(result(VerdictName.NO_BASELINE))


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"refused": 3, "unreadable": {}, "grown": [{}]},
        {"words": None, "contributions": [], "top_words": None, "examples": "none", "grown": [1, "x"]},
        {"words": [{"significant": True}], "contributions": [{}], "top_words": {"marked": [{}]}, "examples": [{}]},
        {"words": [{"word": "x", "z": None, "significant": True}], "contributions": [{"side": "marked"}]},
    ],
)
def test_all_details_are_optional(details: dict[str, Json]) -> None:
    measurement = Measurement(2.0, None, None, None, {}, {}, details)
    failed = result(VerdictName.REGRESSION, measurement=measurement, comparison=None)
    assert "regression" in text_of(failed)
    assert " ".join(failure_text(views(report(failed))[0]).split()).startswith(failed.verdict.reason)


def test_passes_have_no_finding_and_inconclusive_items_say_why() -> None:
    unclear = result(VerdictName.INCONCLUSIVE, value="Asian", reason="Needs about 40 trials to decide.")
    unclear = replace(unclear, verdict=replace(unclear.verdict, undecided="about 40 trials would decide"))
    text = text_of(result(), unclear)
    assert text.count(" vs White") == 1
    assert "Asian vs White: worse by 0.0434 bits (allowed 0.02); about 40 trials would decide" in " ".join(text.split())
    assert "    Needs about 40 trials to decide." in text_of(unclear, verbose=True)


def test_a_pass_that_is_worse_has_a_finding() -> None:
    worse = replace(result(), verdict=Verdict(VerdictName.PASS, "", significant=True))
    assert "significantly worse, but within tolerance" in " ".join(text_of(worse).split())


def test_of_many_items_the_worst_rows_are_shown_and_all_with_v() -> None:
    many = [
        result(VerdictName.REGRESSION if number < 4 else VerdictName.PASS, value=f"v{number}", probe=f"p{number % 12}")
        for number in range(3000)
    ]
    text = text_of(*many)
    assert len(rows_of(*many)) == 1 + WORST_ROWS + 1
    assert "\n… and 2,990 more\n" in text
    assert "✗ 4 regressions, ✓ 2,996 pass" in text
    assert "\np0: ✗ 1 regression, ✓ 249 pass\n" in text
    assert "\n… and 2 more probes\n" in text
    assert "run with -v" in text
    assert len(rows_of(*many, verbose=True)) == 1 + 3000
    assert len(rows_of(*many[:MOST_ROWS])) == 1 + MOST_ROWS


def test_findings_are_shown_with_v() -> None:
    failed = explained(result(VerdictName.REGRESSION), finding="Answers differ.")
    assert "Answers differ." not in text_of(failed)
    assert "products::jsd[race=Black]: Answers differ." in text_of(failed, verbose=True)


def test_errors_with_the_same_reason_share_one_message() -> None:
    errors = [
        result(VerdictName.ERROR, value=f"v{number}", reason=f"jsd[race=v{number}]: given up.") for number in range(20)
    ]
    text = text_of(*errors, result(VerdictName.NOT_MEASURABLE, value="few", reason="only 3 answers"))
    assert text.count("    given up.") == 1
    assert text.count("    only 3 answers") == 1


def test_requests_and_tokens_are_counted() -> None:
    text = text_of(result())
    assert "requests: 200 sent, 25 reused; 12,000 prompt and 51,234 completion tokens" in text
    assert "3 failed" in text_of(result(), failed=3)


def test_a_baseline_of_another_target_is_mentioned() -> None:
    other = {"value": 0.1, "target": "openai:older", "date": "2025-06-07T08:09:10Z"}
    assert "the baseline was measured with openai:older on 2025-06-07" in text_of(result(baseline=other))
    assert "measured" not in text_of(result())


def commands(*results: ItemResult, options: tuple[str, ...] = (), root: str = "") -> list[str]:
    lines = [line.text for line in summary(report(*results), 80, options=options, root=root)]
    first = next((number for number, line in enumerate(lines) if line.startswith("pytest ")), None)
    if first is None:
        return []
    if sys.platform == "win32":
        pytest.skip("the shell is POSIX's")
    script = "pytest() { printf '%s\\0' pytest \"$@\"; }\n" + "\n".join(lines[first:])
    words = subprocess.run(["/bin/sh", "-c", script], check=True, capture_output=True, text=True).stdout.split("\0")
    return words[:-1]


def test_the_accept_command_names_the_failed_items() -> None:
    assert commands(result(VerdictName.REGRESSION)) == [
        "pytest",
        "--fairness-rebaseline",
        "probes/products.yaml::jsd[race=Black]",
    ]
    last = text_of(result(VerdictName.REGRESSION), result(VerdictName.PASS, value="x")).splitlines()[-1]
    assert last == "pytest --fairness-rebaseline 'probes/products.yaml::jsd[race=Black]'"


def test_the_accept_command_has_the_options_of_the_run() -> None:
    options = ("--fairness-target", "openai:my model")
    command = commands(result(VerdictName.REGRESSION), options=options)
    assert command == ["pytest", "--fairness-rebaseline", *options, "probes/products.yaml::jsd[race=Black]"]


@pytest.mark.parametrize(("root", "named"), [("", ""), (".", ""), ("..", "../"), ("team/model", "team/model/")])
def test_the_accept_command_names_files_relative_to_the_working_directory(root: str, named: str) -> None:
    command = commands(result(VerdictName.REGRESSION), root=root)
    assert command[-1] == f"{named}probes/products.yaml::jsd[race=Black]"


def test_a_long_command_is_continued_with_backslashes() -> None:
    results = [result(VerdictName.NO_BASELINE, value=f"it's group {number}") for number in range(5)]
    names = [item.nodeid for item in results]
    assert commands(*results) == ["pytest", "--fairness-rebaseline", *names]
    lines = text_of(*results).splitlines()
    assert [line.endswith(" \\") for line in lines[-6:]] == [True] * 5 + [False]
    assert max(map(width_of, lines[-6:])) <= 80


def test_the_accept_command_names_the_file_of_many_items() -> None:
    many = [result(VerdictName.STALE_BASELINE, value=f"v{number}") for number in range(12)]
    assert commands(*many, result(VerdictName.REGRESSION, probe="letters")) == [
        "pytest",
        "--fairness-rebaseline",
        "probes/letters.yaml::jsd[race=Black]",
        "probes/products.yaml",
    ]


def test_the_accept_command_leaves_out_known_failures() -> None:
    many = [result(VerdictName.REGRESSION, value=f"v{number}") for number in range(9)]
    assert commands(*many) == ["pytest", "--fairness-rebaseline", "probes/products.yaml"]
    known = result(VerdictName.REGRESSION, expected_failure={"reason": "ticket 12", "outcome": "xfailed"})
    assert commands(*many, known)[2:] == [item.nodeid for item in many]


def test_the_accept_command_names_a_file_all_of_whose_items_it_means() -> None:
    items = views(report(result(VerdictName.NO_BASELINE), result(VerdictName.NO_BASELINE, value="x")))
    names = [view.item["nodeid"] for view in items]
    file = "probes/products.yaml"
    assert accept_command(items, all_items={file: names}) == ["pytest", "--fairness-rebaseline", file]
    for known in ({file: [*names, f"{file}::svm"]}, {"probes/letters.yaml": names}, None):
        assert accept_command(items, all_items=known) == ["pytest", "--fairness-rebaseline", *names]


@pytest.mark.parametrize(
    "verdict", [VerdictName.PASS, VerdictName.INCONCLUSIVE, VerdictName.ERROR, VerdictName.NOT_MEASURABLE]
)
def test_other_outcomes_have_no_accept_command(verdict: VerdictName) -> None:
    assert commands(result(verdict)) == []
    assert accept_command(views(report(result(verdict)))) is None


def test_an_item_over_its_limit_has_no_accept_command() -> None:
    text = text_of(result(VerdictName.OVER_LIMIT))
    assert "pytest --fairness-rebaseline" not in text
    assert "`limit` in the probe" in text


def test_two_audits_in_one_test_are_named_once() -> None:
    first = replace(result(VerdictName.REGRESSION), nodeid="tests/test_letters.py::test_letters")
    second = replace(result(VerdictName.REGRESSION, value="x"), nodeid="tests/test_letters.py::test_letters")
    assert commands(first, second)[2:] == ["tests/test_letters.py::test_letters"]


HOSTILE = "\x1b[2J\x1b]0;title\x07 \x9b31m \r\n\x08 \u202e \u2066 \ud800 \0 \u2028"


def test_control_characters_do_not_reach_the_terminal() -> None:
    details = {
        "examples": [{"group": HOSTILE, "text": HOSTILE}],
        "contributions": [{"word": HOSTILE, "side": "marked"}],
    }
    measurement = Measurement(1.0, None, None, None, {HOSTILE: 1}, {HOSTILE: 1}, details)
    hostile = replace(
        result(VerdictName.REGRESSION, value=HOSTILE, probe=HOSTILE, measurement=measurement),
        verdict=Verdict(VerdictName.REGRESSION, HOSTILE),
        baseline={"value": 1.0, "target": HOSTILE, "date": HOSTILE},
    )
    shown = [line.text for line in summary(report(hostile), 80, options=("--fairness-target", HOSTILE))]
    shown += failure_text(views(report(hostile))[0]).splitlines()
    assert "\\x1b[2J" in "".join(shown)
    for line in shown:
        assert not {unicodedata.category(character) for character in line} & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def test_the_failure_text_has_reason_contributors_and_examples() -> None:
    text = failure_text(views(report(result(VerdictName.REGRESSION, reason=LONG)))[0])
    assert text.startswith(LONG[:40])
    assert "hair 0.0123" in text
    assert EXAMPLE.split()[-1] in text
    assert max(map(width_of, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("example", "shown"),
    [
        ({"text": "", "status": "blocked"}, "Black: (refused by the provider)"),
        ({"text": "The", "status": "blocked"}, "Black (refused by the provider): “The”"),
        ({"text": " ", "status": "cut off"}, "Black: (cut off)"),
        ({"text": "The", "status": "cut off"}, "Black (cut off): “The”"),
        ({"text": None, "status": "failed"}, "Black: (failed)"),
        ({"text": None}, "Black: (no answer)"),
        ({"text": "The", "status": "ok"}, "Black: “The”"),
    ],
)
def test_an_example_that_was_not_measured_gives_its_status(example: dict[str, Json], shown: str) -> None:
    details = {"examples": [{"group": "Black", **example}]}
    failed = result(VerdictName.REGRESSION, measurement=Measurement(1.0, None, None, None, {}, {}, details))
    assert failure_text(views(report(failed))[0]).splitlines()[-1].strip() == shown


def test_a_long_example_is_cut() -> None:
    measurement = Measurement(1.0, None, None, None, {}, {}, {"examples": [{"group": "Black", "text": "word " * 999}]})
    failed = result(VerdictName.REGRESSION, measurement=measurement, reason="worse by 0.0434")
    text = failure_text(views(report(failed))[0])
    assert len(text.splitlines()) == 4
    assert text.endswith("…")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (4.0, "4"),
        (0.0612345, "0.0612"),
        (-0.5, "-0.5"),
        (12.345, "12.3"),
        (999.7, "1000"),
        (123456.7, "123457"),
        (0.0000123456, "1.23e-05"),
    ],
)
def test_numbers_have_3_significant_digits(value: float | None, text: str) -> None:
    assert number(value) == text


def test_printable_text_is_on_one_line_and_escaped() -> None:
    assert printable(" a\tb\n\nc ") == "a b c"
    assert printable("\x1b[31m\x7f\u202e") == "\\x1b[31m\\x7f\\u202e"
    # ruff: noqa: RUF001 - Persian needs its joiner
    assert printable("نمی\u200cدانم 👩\u200d🔬 東京") == "نمی\u200cدانم 👩\u200d🔬 東京"


@pytest.mark.parametrize(
    ("names", "width", "shown"),
    [
        (["jsd[race=Black]"], 15, ["jsd[race=Black]"]),
        (["jsd[race=Black]", "svm[a=b,c=d,target=fast]"], 14, ["jsd[Black]", "svm[b,d,fast]"]),
        (["products::jsd[race=Black]"], 17, ["prod…::jsd[Black]"]),
        (["products jsd[race=Middle Eastern]"], 18, ["pro… jsd[Midd…ern]"]),
        (["refusals"], 6, ["re…als"]),
        # Names that would look the same are cut where they differ.
        (
            ["letters_to_landlords::jsd[handed_over,Murat]", "letters_to_banks::jsd[handed_over,Murat]"],
            24,
            ["…rs_to_landlords::jsd[h…", "…rs_to_banks::jsd[hande…"],
        ),
    ],
)
def test_a_name_loses_axes_then_the_probe_then_the_middle_of_its_values(
    names: list[str], width: int, shown: list[str]
) -> None:
    assert cut_ids(names, width) == shown


def test_cut_and_wrap_count_columns() -> None:
    assert cut("東京東京", 5) == "東京…"
    assert cut("abcde", 5) == "abcde"
    assert width_of("👩\u200d🔬") == 2, "one emoji of three characters"
    assert wrap("東京 東京 a", 5, indent=" ") == [" 東京", " 東京", " a"]
    assert wrap("abcdefgh ij", 5, indent="", hanging=" ") == ["abcde", " fgh", " ij"]
    assert wrap("", 5) == [""]
    assert wrap("a b c d e f", 3, lines=2) == ["a b", "c…"]
    assert cut_middle("abcdefgh", 5) == "ab…gh"
    assert cut_middle("東京東京東京", 7) == "東 …京"
    assert cut_middle("abcde", 5) == "abcde"


def test_the_summary_is_the_same_for_a_document_read_from_json() -> None:
    results = [result(verdict, value=verdict.value) for verdict in VerdictName]
    document = report(*results)
    assert summary(json.loads(json.dumps(document)), 80) == summary(document, 80)


NAMES = st.text(st.sampled_from("aZ9 =,-_é李龙ｱ한😀\u0301\u200d[]"), min_size=1, max_size=70) | st.sampled_from(
    ["woman", "Black woman", "x" * 90, "龙" * 45]
)
VALUES = st.floats(allow_nan=False, width=32) | st.sampled_from([0.0, 1e-5, -0.000123456, 123_456.7, 1e30, -1e300])


@st.composite
def item_results(draw: st.DrawFn) -> ItemResult:
    """Any result of an item; a verdict on a change has the change."""
    name = draw(NAMES)
    value = draw(VALUES)
    found = result(
        draw(st.sampled_from(JUDGED)), value=name, probe=draw(st.sampled_from(["gifts", "商品の推薦" * 9, "p" * 60]))
    )
    if found.measurement is None:
        return found
    interval = (value - abs(draw(VALUES)), value + abs(draw(VALUES)))
    measurement = replace(found.measurement, value=value, interval=draw(st.sampled_from([None, interval])))
    comparison = found.comparison and replace(found.comparison, value=value, interval=interval)
    return replace(found, measurement=measurement, comparison=comparison, limit=draw(st.none() | VALUES))


@given(st.lists(item_results(), min_size=1, max_size=4), st.integers(50, 130))
def test_no_line_but_a_command_is_wider_than_the_terminal(results: list[ItemResult], width: int) -> None:
    lines = [line.text for line in lines_of(*results, width=width)]
    commands = [place for place, line in enumerate(lines) if line.startswith("pytest --fairness-rebaseline")]
    assert [line for line in lines[: min(commands, default=None)] if width_of(line) > width] == []
