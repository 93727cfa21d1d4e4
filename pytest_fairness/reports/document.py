"""The report document (schema 1): the JSON structure from which all reports are made, and notes on a whole run."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from pytest_fairness.audits.confounding import CONFOUNDING
from pytest_fairness.audits.info import Direction, grown_words, strongest
from pytest_fairness.errors import counted, joined
from pytest_fairness.records import (
    Contributor,
    Explanation,
    ItemResult,
    Json,
    Listing,
    RowsWithoutGroup,
    target_name,
    without_nonfinite,
)
from pytest_fairness.reports.formatting import age, as_float, money, number
from pytest_fairness.reports.view import (
    Item,
    creep_in_words,
    group_names,
    listed,
    mappings_in,
    status_in_words,
    unmarked_label,
    words_that_grew,
)

# The report document (schema 1): the JSON structure from which all reports are made.
#
# `docs/report.schema.json` describes each field.

SCHEMA_VERSION = 1
REQUEST_COUNTS = ("planned", "sent", "reused", "failed", "prompt_tokens", "completion_tokens")


def report_document(
    results: Iterable[ItemResult],
    *,
    tool_version: str,
    target: str,
    started: float | str,
    seconds: float,
    requests: Mapping[str, float | None],
    targets: Mapping[str, str] | None = None,
    target_version: str | None = None,
    commit: str | None = None,
    failures: Mapping[str, int] | None = None,
    oldest_reused: float | None = None,
    notes: Iterable[RunNote] = (),
) -> dict[str, Json]:
    """Return the report document of one run. The order of the results does not matter.

    Args:
        results: the results of all selected audit items.
        tool_version: version of pytest-fairness.
        target: the audited target, as the user named it.
        started: start of the run, in seconds since the epoch or as ISO 8601 in UTC.
        seconds: duration of the run.
        requests: the numbers of requests and tokens named in `REQUEST_COUNTS` (0 if a name is missing), and `cost`.
        targets: each audited target, by the name that the user gave it (`NAME=TARGET`); empty or `None` without names.
        target_version: version that the user has set for the target; `None` if not set.
        commit: id of the tested project's commit, and whether there were uncommitted changes; `None` if unknown.
        failures: number of failed requests by error message, the most frequent first.
        oldest_reused: arrival time of the oldest reused response, in seconds since the epoch; `None` without reuse.
        notes: notes on the whole run.
    """
    ordered = sorted(results, key=lambda result: (result.nodeid, result.probe, result.id))
    if not isinstance(started, str):
        started = _date(started)
    methods = {result.audit: result.method for result in ordered}
    purposes = {result.probe: result.purpose.strip() for result in ordered if result.purpose}
    counts: dict[str, Json] = {name: int(requests.get(name) or 0) for name in REQUEST_COUNTS}
    return {
        "schema": SCHEMA_VERSION,
        "tool": f"pytest-fairness {tool_version}",
        "target": target,
        "target_version": target_version,
        "commit": commit,
        "started": started,
        "seconds": round(seconds, 3),
        "requests": {
            **counts,
            "cost": without_nonfinite(requests.get("cost")),
            "failures": [{"message": message, "count": count} for message, count in (failures or {}).items()],
            "oldest_reused": None if oldest_reused is None else _date(oldest_reused),
        },
        "notes": [note.to_json() for note in notes],
        "summary": {
            **_counts(ordered),
            "by_probe": _counts_by(ordered, lambda result: result.probe),
            "by_audit": _counts_by(ordered, lambda result: result.audit),
            "by_category": _counts_by(ordered, lambda result: result.category),
            **({"by_target": _by_target(ordered, targets)} if targets else {}),
        },
        "purposes": purposes,
        "risks": {result.probe: dict(result.risk) for result in ordered if result.risk},
        "methods": {name: dict(method) for name, method in sorted(methods.items()) if method},
        "items": [result.to_json() for result in ordered],
    }


def reused_age(document: Mapping[str, Json]) -> str:
    """Return the age of the oldest reused response at the start of the run: ` (oldest 3 h)`; empty without reuse."""
    oldest = document["requests"].get("oldest_reused")
    if oldest is None:
        return ""
    seconds = (datetime.fromisoformat(document["started"]) - datetime.fromisoformat(oldest)).total_seconds()
    return f" (oldest {age(seconds)})"


def reused_answers(document: Mapping[str, Json]) -> str:
    """Return `0 requests sent: 160 answers of earlier runs`; empty if most answers are of this run."""
    requests = document["requests"]
    if requests["reused"] <= requests["sent"]:
        return ""
    of_earlier = f"{counted(requests['reused'], 'answer')} of earlier runs{reused_age(document)}"
    return f"{counted(requests['sent'], 'request')} sent: {of_earlier}"


def request_counts(document: Mapping[str, Json], retried: float = 0) -> str:
    """Return the numbers of requests and tokens, and the cost: `requests: 20 sent, 5 reused (oldest 3 h), 1 failed`."""
    requests = document["requests"]
    retries = f" ({retried:,.0f} retr{'y' if retried == 1 else 'ies'})" if retried else ""
    parts = [f"requests: {requests['sent']:,} sent{retries}, {requests['reused']:,} reused{reused_age(document)}"]
    parts += [f", {requests['failed']:,} failed"] if requests["failed"] else []
    if requests["prompt_tokens"] or requests["completion_tokens"]:  # not every target reports tokens
        parts.append(f"; {requests['prompt_tokens']:,} prompt and {requests['completion_tokens']:,} completion tokens")
    parts += [] if requests["cost"] is None else [f"; cost {money(requests['cost'])}"]
    return "".join(parts)


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _by_target(results: Sequence[ItemResult], targets: Mapping[str, str]) -> dict[str, Json]:
    by_name = {
        name: [result for result in results if target_name(result.id, result.labels) == name] for name in targets
    }
    return {
        name: {
            "target": targets[name],
            **_counts(by_name[name]),
            "by_audit": _counts_by(by_name[name], lambda result: result.audit),
        }
        for name in sorted(targets)
    }


def _counts(results: Sequence[ItemResult]) -> dict[str, Json]:
    outcomes = [result.outcome for result in results]
    judged = len(results) - outcomes.count("measured")
    return {
        "total": len(results),
        "passed": outcomes.count("passed"),
        "failed": outcomes.count("failed"),
        "known": outcomes.count("known"),
        "inconclusive": outcomes.count("inconclusive"),
        "errors": outcomes.count("error"),
        "measured": outcomes.count("measured"),
        "pass_rate": outcomes.count("passed") / judged if judged else None,
    }


def _counts_by(results: Sequence[ItemResult], name_of: Callable[[ItemResult], str | None]) -> dict[str, Json]:
    groups: dict[str, list[ItemResult]] = defaultdict(list)
    for result in results:
        name = name_of(result)
        if name is not None:
            groups[name].append(result)
    return {name: _counts(groups[name]) for name in sorted(groups)}


# Explanation of an item in words, made from the details of its measurement and comparison.

SIDES = ("marked", "unmarked")


def explanation_of(item: Item) -> Explanation:
    """Return what the details of an item say: contributors with their numbers, sentences and further phrases.

    The mapping has the keys `labels`, `n`, `missing`, `change` and `details` of the report document.
    """
    details: Mapping[str, Json] = item["details"]
    names = dict(zip(SIDES, group_names(item), strict=True))
    grown = grown_words(mappings_in(details.get("grown")), names)
    significant = [
        replace(word, text=_z(detail))
        for detail in mappings_in(details.get("words"))
        if detail.get("significant")
        for word in _weighted([detail], names, "z")
    ]
    bits = _weighted(mappings_in(details.get("contributions")), names, "bits")
    top, function = (_weighted(_sided(details.get(name)), names, "weight") for name in ("top_words", "function_words"))
    terms = [_term(term, names) for term in mappings_in(details.get("terms"))]
    share = details.get("function_word_share")
    weight = f", {share:.0%} of the weight" if isinstance(share, float) else ""
    more, since = "used more for {}", " since the baseline"
    unmarked = unmarked_label(names["unmarked"])
    lists = [
        *_lists(grown, {names["marked"]: f"{more}{since}", names["unmarked"]: f"used more for {unmarked}{since}"}),
        *([] if grown else _lists(significant, dict.fromkeys(names.values(), more))),
        *_lists(bits, dict.fromkeys(names.values(), f"{more} (bits)")),
        *_lists(top, dict.fromkeys(names.values(), "typical of {}")),
        *_lists(function, dict.fromkeys(names.values(), f"typical function words of {{}}{weight}")),
        *_lists(terms, dict.fromkeys(names.values(), f"{more} (per 100 words)")),
    ]
    changed, placebo = mappings_in(details.get("changed_sentences")), details.get("placebo")
    return Explanation(
        unit=str(details.get("unit") or ""),
        amount=words_that_grew(item["change"]["value"]) if item["change"] and "grown" in details else "",
        lists=lists,
        rates=_rates(details),
        words=grown or significant or _strongest(bits) or _strongest(top) or _strongest(terms),
        notes=[*_odds_ratio(details), *_markers_of_cases(details), *_answers(item), *_paraphrases(details)],
        sentences=[
            f"“{part.get('sentence')}” → “{part.get('answer')}”"
            + (f" (baseline: “{part['before']}”)" if part.get("before") is not None else "")
            for part in changed or mappings_in(details.get("sentences"))
        ],
        placebo="" if not placebo else number(placebo["value"]) if "value" in placebo else "unknown",
        served=str(details.get("served_model") or ""),
        served_change=str(details.get("served_model_changed") or ""),
    )


def _rates(details: Mapping[str, Json]) -> list[Contributor]:
    """Return the rates or means that the value compares, in this run and in the baseline.

    A share of positive answers is named by the answer and by the value of the attribute: `'yes' as Male`.
    """
    unit = "share" if any(name in details for name in ("positive", "shares", "ratio")) else details.get("unit")
    values, found = details.get("values"), list[Contributor]()
    for rate in mappings_in(details.get("moved")):
        name = rate.get("value", rate.get("name"))
        if isinstance(values, list) and name in values and "positive" in details:
            name = f"'{details['positive']}' as {name}"
        if name is not None:
            now, then = as_float(rate.get("now")), as_float(rate.get("then"))
            found.append(Contributor(str(name), "", now, then, rate.get("unit") or unit or ""))
    return found


def _lists(words: Sequence[Contributor], titles: Mapping[str, str]) -> list[Listing]:
    found = {group: [word for word in words if word.group == group] for group in titles}
    return [Listing(titles[group].format(group), own) for group, own in found.items() if own]


def _sided(sides: Json) -> list[Mapping[str, Json]]:
    words = sides if isinstance(sides, Mapping) else {}
    return [{**word, "side": side} for side in SIDES for word in mappings_in(words.get(side))]


def _weighted(words: Sequence[Mapping[str, Json]], names: Mapping[str, str], unit: str) -> list[Contributor]:
    return [
        Contributor(
            name := str(word.get("word")),
            names.get(str(word.get("side")), ""),
            as_float(word.get(unit)),
            None,
            unit,
            f"{name} {number(word.get(unit))}" if unit == "bits" else name,
        )
        for word in words
    ]


def _term(term: Mapping[str, Json], names: Mapping[str, str]) -> Contributor:
    rates = {side: term.get(side) or 0 for side in SIDES}
    own, other = sorted(SIDES, key=lambda side: -rates[side])
    group = names[own] if rates[own] != rates[other] else ""
    text = f"{term.get('term')} {number(term.get(own))} against {number(term.get(other))}"
    return Contributor(str(term.get("term")), group, as_float(term.get("gap")), None, "per 100 words", text)


def _z(word: Mapping[str, Json]) -> str:
    own, other = SIDES if word.get("side") == "marked" else SIDES[::-1]
    counts = word.get(own), word.get(other)
    uses = "" if None in counts else f", uses {number(counts[0])} against {number(counts[1])}"
    return f"{word.get('word')} (z {number(word.get('z'))}{uses})"


def _strongest(words: Sequence[Contributor]) -> list[Contributor]:
    strong = strongest({word.name: word.now or 0.0 for word in words})
    return [word for word in words if word.name in strong]


def _odds_ratio(details: Mapping[str, Json]) -> list[str]:
    odds = details.get("odds_ratio")
    if not isinstance(odds, Mapping) or odds.get("value") is None:
        return []
    ends = odds.get("interval")
    span = f" [{number(ends[0])}, {number(ends[1])}]" if isinstance(ends, list | tuple) and len(ends) == 2 else ""
    p_value = number(odds.get("p_value"))
    return [f"odds ratio of all terms {number(odds['value'])}{span}, p {p_value} (the test counts texts, not words)"]


def _markers_of_cases(details: Mapping[str, Json]) -> list[str]:
    """Return a phrase for each case, with its markers and the number of answers that contain each marker.

    The markers of the stereotype come before the markers of the anti-stereotype.
    """
    by_case, counts = details.get("markers"), details.get("counts")
    if not isinstance(by_case, Mapping) or not isinstance(counts, Mapping):
        return []
    return [
        f"{case}, markers in {counts[case]['responses']} answers: "
        + "; ".join(
            f"{title} {listed(f'{marker} {count}' for marker, count in markers[side].items()) or 'none'}"
            for side, title in (("stereotype", "stereotype"), ("anti_stereotype", "opposite"))
        )
        for case, markers in by_case.items()
    ]


def _answers(item: Item) -> list[str]:
    """Return phrases with the number of refused, unreadable and missing answers by group: `refused: Black 3 of 20`."""
    kinds = {kind: item["details"].get(kind) for kind in ("refused", "blocked", "unreadable")}
    kinds = {status_in_words(kind): counts for kind, counts in kinds.items()}
    kinds["no usable answer"] = item["missing"]
    return [
        f"{kind}: {listed(_counts_by_group(counts, item))}"
        for kind, counts in kinds.items()
        if isinstance(counts, Mapping) and any(counts.values())
    ]


def _paraphrases(details: Mapping[str, Json]) -> list[str]:
    paraphrases = details.get("paraphrases")
    if not isinstance(paraphrases, Mapping) or not isinstance(paraphrases.get("values"), Mapping):
        return []
    values = ", ".join(f"prompt {name}: {number(value)}" for name, value in paraphrases["values"].items())
    noise = number(paraphrases.get("floor"))
    alone = f"values of the answers to one paraphrase alone: {values}"
    return [f"{alone}; paraphrasing alone changes the value by about {noise}"]


def _counts_by_group(counts: Mapping[str, int], item: Item) -> list[str]:
    missing, n = item["missing"], item["n"]
    groups = dict.fromkeys([*n, *missing, *counts])
    return [f"{group} {counts.get(group, 0)} of {missing.get(group, 0) + n.get(group, 0)}" for group in groups]


# Notes on a whole run, such as a warning that too few audits ran.

Kind = Literal[
    "default-target",
    "no-audit",
    "few-audits",
    "review",
    "inconclusive-runs",
    "rows-without-group",
    "confounding",
    "data-file",
    "extra-fields",
    "level-change",
    "limit",
    "against",
    "creep",
    "drift",
    "history",
    "orphaned-baselines",
    "shard",
    "batches",
]


@dataclass(frozen=True)
class RunNote:
    """A note on a run.

    Attributes:
        kind: identifier for programs that read the JSON report.
        text: the note in full sentences.
        fails: whether the note makes the run fail.
    """

    kind: Kind
    text: str
    fails: bool = False

    def to_json(self) -> dict[str, Json]:
        """Return the note as plain JSON for the report document."""
        return {"kind": self.kind, "text": self.text}


def texts_of_notes(document: Mapping[str, Json]) -> list[str]:
    """Return the texts of a report document's notes; an empty list for reports of earlier versions."""
    return [note["text"] for note in document.get("notes", ())]


def on_number_of_audits(
    ran: int, *, selected: int, errors: int, min_audits: int, folders: str, ended_early: bool = False
) -> RunNote | None:
    """Return the note on a run with no audit, or with fewer audits than `min_audits`; `None` if enough audits ran."""
    if ran >= max(1, min_audits):
        return None
    if ran:
        text = f"only {counted(ran, 'audit')} ran; the ini option `fairness_min_audits` requires {min_audits:,}."
        return RunNote("few-audits", text, fails=True)
    if selected:
        skipped = selected - errors
        parts = [f"{errors:,} could not be measured"] if errors else []
        parts += [f"{skipped:,} {'was' if skipped == 1 else 'were'} skipped or not reached"] if skipped > 0 else []
        why = f"of {counted(selected, 'selected audit')}, {' and '.join(parts)}"
    elif ended_early:
        why = "pytest stopped before the first audit"
    else:
        why = f"no probe was selected; the folders with probes are {folders} (ini option `fairness_probes`)"
    cure = (
        f" The run fails because the ini option `fairness_min_audits` requires {min_audits:,} (default: 1 in CI and in "
        "projects with a probe folder). To run no audits, run pytest without --fairness."
    )
    return RunNote(
        "no-audit", f"no audit ran: {why}.{cure if min_audits and not ended_early else ''}", fails=min_audits > 0
    )


def on_shard(shard: str) -> RunNote:
    """Return the note on a run that sent only the requests of one shard, such as `2/5`."""
    return RunNote(
        "shard",
        f"shard {shard}: this run sent the requests of its shard and gave no verdicts. After the runs of all shards, "
        "merge their stores with `python -m pytest_fairness merge`, then get verdicts with `pytest --fairness "
        "--fairness-replay`.",
    )


ON_BATCHES = RunNote(
    "batches",
    "batches: this run submitted its requests in batches and gave no verdicts. For answers and verdicts, run "
    "`pytest --fairness --fairness-batch=collect` with the same store; providers answer within 24 hours.",
)
"""Note on a run that submitted its requests in batches."""


def on_inconclusive_runs(results: Sequence[ItemResult], runs: int, *, fails: bool) -> list[RunNote]:
    """Return a note for each repeatedly inconclusive item, with the advice from the reason of the item's verdict."""
    which = "this run" if runs == 1 else f"each of the last {runs} runs"
    return [
        RunNote(
            "inconclusive-runs",
            f"{result.probe} {result.id} was inconclusive in {which}, so it would not detect a regression: "
            f"{result.verdict.reason.partition('; ')[2] or result.verdict.reason}",
            fails,
        )
        for result in results
    ]


def on_answer_files(results: Sequence[ItemResult]) -> list[RunNote]:
    """Return notes on answer files: rows that name no group of the probe, and columns that predict the group."""
    left_out = [
        (result.probe, RowsWithoutGroup(**counts))
        for result in results
        if result.measurement and (counts := result.measurement.details.get("rows_without_group"))
    ]
    of_rows = dict.fromkeys(f"{probe}: {rows}.{f' {rows.remedy}.' if rows.unknown else ''}" for probe, rows in left_out)
    predicting = dict.fromkeys(
        f"{result.probe}: {note}."
        for result in results
        if result.measurement
        for note in result.measurement.details.get(CONFOUNDING, ())
    )
    notes = [RunNote("rows-without-group", text) for text in of_rows]
    return notes + [RunNote("confounding", text) for text in predicting]


def on_extra_fields(results: Sequence[ItemResult]) -> list[RunNote]:
    """Return a note for each probe whose requests have further fields (`sampling.extra`)."""
    fields = {result.probe: result.extra_fields for result in results if result.extra_fields}
    return [
        RunNote(
            "extra-fields",
            f"{probe}: the requests have further fields (`sampling.extra`): "
            f"{', '.join(f'{name}: {json.dumps(value, ensure_ascii=False)}' for name, value in own.items())}.",
        )
        for probe, own in fields.items()
    ]


def on_orphans(found: Sequence[str], *, fails: bool) -> list[RunNote]:
    """Return a note on baselines that belong to no item, such as `gifts: refusals[name=Lou]`; nothing without any."""
    if not found:
        return []
    text = (
        f"{counted(len(found), 'baseline')} without an item, so that nothing is compared: {joined(found)}. "
        "If a probe, an attribute or a target was renamed, rename the baseline, too; else delete it, or rebaseline the "
        "whole probe."
    )
    return [RunNote("orphaned-baselines", text, fails)]


def on_base(
    revision: str, results: Sequence[ItemResult], removed: Sequence[str], *, empty: bool, fails: bool
) -> list[RunNote]:
    """Return notes on a run that is judged by another revision: accepted changes, and baselines without an item.

    `empty` says whether the revision has no baselines.
    """
    accepted = [result for result in results if result.against and result.against.accepted]
    worse = sum(result.outcome == "failed" for result in accepted)
    text = f"judged by the baselines of {revision}, not by those of the working tree"
    drifts = [
        (f"{result.probe} {result.id}", result.against.drift.verdict)
        for result in results
        if result.against is not None and result.against.drift is not None
    ]
    if drifts:
        text = f"the own change is judged against the prompts and the target of {revision}, asked again in this run"
    if empty:
        text = f"{revision} has no baselines in this folder, so that nothing is compared with it"
    if accepted:
        text += f"; this change accepts new baselines of {counted(len(accepted), 'item')}"
        text += f", {worse} of them worse than allowed: whoever reviews the change decides" if worse else ""
    notes = [RunNote("against", f"{text}.")]
    if drifted := [name for name, verdict in drifts if verdict.outcome == "failed"]:
        cause = "The provider, the model or its data changed, not this working tree; this does not fail the run."
        text = f"drift: {len(drifted)} of {counted(len(drifts), 'item')} of {revision} got worse since the baseline"
        notes.append(RunNote("drift", f"{text}: {joined(drifted)}. {cause}"))
    if removed:
        lost = f"{counted(len(removed), 'baseline')} of {revision} without an item, so that nothing is compared"
        cure = "If this change removes or renames them on purpose, its reviewer decides."
        notes.append(RunNote("orphaned-baselines", f"{lost}: {joined(removed)}. {cure}", fails))
    return notes


def on_creep(results: Sequence[ItemResult], *, fails: bool) -> list[RunNote]:
    """Return a note on items whose accepted changes add up beyond their tolerance; nothing without any."""
    found = [
        f"{result.probe} {result.id} {creep_in_words(result.creep.to_json(), result.method.get('unit') or '')}"
        for result in results
        if result.creep is not None and result.creep.is_large
    ]
    if not found:
        return []
    cure = "To let it begin anew on purpose, delete the baseline in a commit of its own, and rebaseline."
    return [RunNote("creep", f"creep: accepted changes add up beyond the tolerance: {joined(found)}. {cure}", fails)]


def on_unknown_creep() -> RunNote:
    """Return the note on a history of baselines that is incomplete, although creep makes a run fail."""
    return RunNote(
        "creep",
        "creep is not known: the clone is shallow, or there is no git repository (fairness_creep = fail). Fetch the "
        "whole history: `git fetch --unshallow`, `fetch-depth: 0` on GitHub, `GIT_DEPTH: 0` on GitLab.",
        fails=True,
    )


def on_reviews(results: Sequence[ItemResult], day: str, *, fails: bool) -> list[RunNote]:
    """Return a note for each probe whose day `risk.review_by` is before the `day` of the run (ISO 8601)."""
    due = {result.probe: result.risk for result in results if result.risk and result.risk.get("review_by", day) < day}
    return [
        RunNote(
            "review",
            f"{probe}: its risk was to be reviewed by {risk['review_by']}{f' by {owner}' if owner else ''}. Review the "
            "block `risk`, and write the next day into `review_by`.",
            fails,
        )
        for probe, risk in due.items()
        for owner in (risk.get("owner"),)
    ]


def on_missing_folder(folder: str, *, fails: bool) -> RunNote:
    """Return the note on a folder of baselines that the ini file names, but that does not exist."""
    text = f"the folder of baselines {folder} (ini fairness_baselines) does not exist, so that nothing is compared."
    return RunNote("orphaned-baselines", text, fails)


def on_shared_changes(results: Sequence[ItemResult], *, fails: bool) -> list[RunNote]:
    """Return a note for each large change of a probe's answers since the baseline that all groups share."""
    texts: dict[tuple[str, str, str], str] = {}
    for result in results:
        target = target_name(result.id, result.labels) or ""
        for change in result.comparison.shared_changes if result.comparison is not None else ():
            place = f"{result.probe}@{target}" if target else result.probe
            texts.setdefault(
                (result.probe, target, change.quantity),
                f"{place}: answers changed for everybody since the baseline: {change.text}. Differences between "
                "groups do not show it: look at the answers, then accept them with --fairness-rebaseline.",
            )
    return [RunNote("level-change", text, fails) for text in texts.values()]


def on_limits(results: Sequence[ItemResult]) -> list[RunNote]:
    """Return a note for each audit with a limit that is the worst possible value, so that no value exceeds it."""
    notes: dict[str, None] = {}
    for result in results:
        if result.limit is None or not result.method:
            continue
        low, high = result.method["value_range"]
        loss = Direction(result.method["better"]).loss
        if loss(result.limit) >= max(loss(-math.inf if low is None else low), loss(math.inf if high is None else high)):
            place = f"{result.nodeid.partition('::')[0]}:{result.line}"
            text = (
                f"{place}: no value of {result.audit} exceeds the limit {result.limit:g}, so that the limit passes "
                "whatever is answered. Write the worst value that you accept."
            )
            notes[text] = None
    return [RunNote("limit", text) for text in notes]
