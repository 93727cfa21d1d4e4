"""Summary of a bias audit of a file of applicants: `measure FILE --impact-ratio`."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime

from pytest_fairness.commands import write
from pytest_fairness.errors import FairnessError
from pytest_fairness.version import __version__


def add_impact_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "impact ratios",
        "With --impact-ratio, the command writes the summary that New York's Local Law 144 asks for: applicants, rates "
        "and impact ratios by sex, race or ethnicity, and both.",
    )
    group.add_argument("--impact-ratio", action="store_true", help="write this summary; FILE has an applicant per row")
    group.add_argument("--sex", metavar="COLUMN", help="column with the sex")
    group.add_argument("--race", metavar="COLUMN", help="column with the race or ethnicity")
    group.add_argument("--score", metavar="COLUMN", help="column with the scores; who is above the median counts")
    group.add_argument("--selected", metavar="COLUMN", help="column that says who is selected, such as yes and no")
    group.add_argument("--selected-value", metavar="VALUE", help="value of --selected that means selected")
    group.add_argument(
        "--unknown",
        action="append",
        default=[],
        metavar="VALUE",
        help="further value that means unknown, besides empty, unknown, n/a and similar; may be repeated",
    )
    group.add_argument("--tool-name", default="", metavar="TEXT", help="the audited tool and its version")
    group.add_argument("--distribution-date", type=_day, metavar="DATE", help="day since which it is used")
    group.add_argument(
        "--source", default="", metavar="TEXT", help="source and explanation of the data: whose, of which time"
    )
    group.add_argument("--auditor", default="", metavar="TEXT", help="who makes the audit")


def run_impact(arguments: argparse.Namespace) -> None:
    """Write the summary of a bias audit to the files of `--report`; without any, to standard output."""
    from pytest_fairness.reports import impact_summary, pages
    from pytest_fairness.reports.files import write_text
    from pytest_fairness.reports.html import require_extra

    attributes = {"Sex": arguments.sex, "Race or ethnicity": arguments.race}
    attributes = {name: column for name, column in attributes.items() if column is not None}
    if not attributes:
        raise FairnessError("--impact-ratio: name the column of the sex with --sex, of race or ethnicity with --race.")
    if (arguments.score is None) == (arguments.selected is None):
        raise FairnessError(
            "--impact-ratio: name either the column of the scores with --score, or that of the "
            "decisions with --selected."
        )
    for path in arguments.report:
        if path.suffix.lower() not in pages.FORMATS:
            raise FairnessError(f"--report {path}: the name must end in {', '.join(pages.FORMATS)}.")
        if path.suffix.lower() == ".html":
            require_extra()
    summary = impact_summary.summarized(
        arguments.answers,
        attributes,
        arguments.score or arguments.selected,
        scores=arguments.score is not None,
        positive=arguments.selected_value,
        unknown=arguments.unknown,
        facts={
            "audited tool": arguments.tool_name,
            "distribution date of the tool": arguments.distribution_date or "",
            "date of the audit": datetime.now(UTC).date().isoformat(),
            "auditor": arguments.auditor,
            "source and explanation of the data": arguments.source,
            "computed by": f"pytest-fairness {__version__}",
        },
    )
    for path in arguments.report:
        write_text(path, impact_summary.rendered(summary, path.suffix.lower()), "--report")
        print(f"wrote {path}")
    if not arguments.report:
        write([impact_summary.page(summary).as_markdown()], None)


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a day such as 2026-01-31, not {text!r}") from None


def is_impact(arguments: argparse.Namespace) -> bool:
    """Return whether the summary of impact ratios is wanted; raise an error about arguments that do not fit."""
    given = arguments.impact_ratio
    other = ("group", "unmarked", "text")
    own = ("sex", "race", "score", "selected")
    missing = [] if given else [f"--{name}" for name in other if getattr(arguments, name) is None]
    wrong = [f"--{name}" for name in (other if given else own) if getattr(arguments, name) is not None]
    if wrong:
        raise FairnessError(f"{', '.join(wrong)}: only {'without' if given else 'with'} --impact-ratio.")
    if missing:
        arguments.parser.error(f"the following arguments are required: {', '.join(missing)}")
    return bool(given)
