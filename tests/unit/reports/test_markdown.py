"""The Markdown report: content, length and escaping."""

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytest_fairness.records import Comparison, VerdictName
from pytest_fairness.reports import markdown
from pytest_fairness.reports.files import compare
from pytest_fairness.reports.files import comparison_markdown as compared
from tests.support.results import REASON, explained, report, result

HOSTILE = [
    "<script>alert(1)</script>",
    "<!-- ",
    "a | b || c",
    "**bold** _it_ ~~no~~ `code` ``x",
    "[x](https://evil.example) ![y](https://evil.example/z.png)",
    "# head\n\n---\n> quote\n- list",
    "\\| \\<b> &lt; &#60;b&#62;",
    "$x$ \x1b[31m \u202e",
]


def tokens(text: str) -> list[Token]:
    parsed = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    return [token for outer in parsed for token in (outer, *(outer.children or ()))]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_adds_no_formatting(hostile: str) -> None:
    one = result(VerdictName.REGRESSION, value=hostile, probe=hostile, reason=hostile)
    run = report(one, result(value=hostile))
    run["target"] = hostile
    harmless = report(result(VerdictName.REGRESSION, reason="x"), result(probe="y"))
    for written, expected in (
        (markdown.report(run), markdown.report(harmless)),
        (compared(compare(harmless, run)), compared(compare(harmless, harmless))),
    ):
        kinds = {token.type for token in tokens(written)}
        assert kinds <= {token.type for token in tokens(expected)} | {"table_open", "table_close"} | CELLS
        html = {token.content.strip() for token in tokens(written) if token.type.startswith("html")}
        assert all(part.startswith(("<details>", "</details>", "<sub>", "</sub>")) for part in html)


CELLS = {f"{part}_{end}" for part in ("tr", "td", "th", "thead", "tbody") for end in ("open", "close")}


def test_rows_have_as_many_cells_as_headings() -> None:
    text = markdown.report(report(result(VerdictName.REGRESSION, reason="a | b \\| c")))
    row = tokens(text)
    assert sum(token.type == "td_open" for token in row) == sum(token.type == "th_open" for token in row) == 6


def test_escaped_text_is_rendered_unchanged() -> None:
    told = "50 % *more* of <b>, a|b & c_d [1, 2] #5x"
    cells = [token for token in tokens(markdown.table(["x"], [[markdown.escaped(told)]])[0]) if token.children]
    assert cells
    (inline,) = [t for t in MarkdownIt("gfm-like", {"linkify": False}).parse(markdown.escaped(told)) if t.children]
    read = "".join(child.content for child in inline.children or ())
    assert read.replace("\u200b", "") == told


def test_names_issues_and_addresses_are_not_linked() -> None:
    text = markdown.escaped("ask @torvalds about #12, GH-3 and https://evil.example or www.evil.example")
    for wrong in ("@torvalds", "#12", "GH-3", "://", "www."):
        assert wrong not in text


def test_failures_are_shown_and_passes_collapsed() -> None:
    text = markdown.report(report(result(VerdictName.REGRESSION), result(value="Asian"), result(probe="letters")))
    head, _, rest = text.partition("<details>")
    assert head.startswith("## Fairness: 1 of 3 checks got worse; 2 passed\n\nTarget: openai:model.")
    row = next(line for line in head.splitlines() if "Black" in line)
    reason = REASON.replace("<", "&lt;")
    assert f"| 0.0612 | 0.0178 | +0.0434 [0.0291, 0.0572] | {reason} |" in row
    assert "<summary>2 passed</summary>" in rest
    assert "used more for Black (bits): hair 0.0123, oil 0.0081" in rest
    assert rest.count("</details>") == 3
    assert text.endswith("12,000 prompt and 51,234 completion tokens</sub>\n")


def test_each_finding_is_shown_once_with_the_names_of_its_items() -> None:
    same, more, other = (
        explained(result(VerdictName.REGRESSION, audit=audit), finding=finding)
        for audit, finding in (("jsd", "More hats."), ("svm", "More hats."), ("mmd", "More drills."))
    )
    text = markdown.report(report(same, more, other)).partition("<summary>Findings</summary>")[2]
    lines = [line for line in text.splitlines() if line.startswith("- **")]
    assert [line.count("race=Black") for line in lines] == [2, 1]
    assert [line.rpartition("**: ")[2] for line in lines] == ["More hats.", "More drills."]


def test_words_that_grew_are_not_shown_as_a_difference_of_values() -> None:
    change = Comparison(3.0, None, None, 0.001, details={"grown": []})
    text = markdown.report(report(result(VerdictName.REGRESSION, audit="marked_words", comparison=change)))
    assert "|  |  | 3 words grew |" in text, "the value counts other words"


def test_errors_count_as_failed_and_a_run_without_items_has_no_table() -> None:
    assert "## Fairness: No regression found, but 1 of 1 check could not be measured; 0 passed\n" in markdown.report(
        report(result(VerdictName.ERROR))
    )
    assert markdown.report(report()).startswith("## Fairness: no audit ran\n")


@pytest.mark.parametrize(("verdict", "items"), [(VerdictName.REGRESSION, 300), (VerdictName.PASS, 900)])
def test_the_report_fits_into_a_comment(verdict: VerdictName, items: int) -> None:
    reason = "a long reason, 東京, with @names " * 40
    text = markdown.report(report(*(result(verdict, value=f"v{n}", reason=reason) for n in range(items))))
    assert 60_000 < len(text) <= markdown.MAX_LENGTH
    assert "more: see the JSON or HTML report." in text
    assert text.count("<details>") == text.count("</details>")
