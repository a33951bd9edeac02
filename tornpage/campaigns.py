"""A campaign's result as a document and as text."""

from collections.abc import Mapping
from typing import Any

from properties.campaign import CampaignResult
from properties.pagemap import page_map
from properties.recorder.dirty import choose_tracker
from properties.replay import Failure
from tornpage.document import Outcome
from tornpage.failures import failure_finding, failure_text, save_case

__all__ = ["outcome_of", "text_of"]

_TIMINGS = ("seconds", "states_per_s", "history_s", "choose_s", "recover_and_judge_s")


def outcome_of(result: CampaignResult, *, seed: int, out: str | None, command: str) -> Outcome:
    """Return the outcome of a campaign, writing the case file if there is a place for it.

    `command` is what a caption names to run it again.
    """
    caption = {"source": "crash campaign", "seed": seed, "command": command}
    tally = result.tally
    figures: dict[str, float | int] = {
        "states": tally.states,
        "all_states": tally.all_states,
        "histories": tally.histories,
        "distinct_images": len(tally.images),
        "distinct_recovered": len(tally.recovered),
        "proven_legal": tally.proven_legal,
        "repeated_histories": result.repeated,
        "seconds": result.seconds,
        "states_per_s": tally.states / max(result.seconds, 1e-9),
        **{f"{stage.replace(' ', '_')}_s": seconds for stage, seconds in tally.seconds.items()},
    }
    for kind in ("armed", "fired", "mattered"):
        figures |= {f"{kind}_{fault}": count for fault, count in getattr(tally, kind).items()}
    figures |= {f"judged_{judge}": count for judge, count in tally.judged.items()}
    findings = [{"code": "never-fired", "severity": "vacuous", "sentence": f"{f} never fired"} for f in result.silent]
    if not result.canary and result.failure is None:
        sentence = "interrupted before the canary" if result.interrupted else "no planted bug was caught"
        findings.append({"code": "no-canary", "severity": "vacuous", "sentence": sentence})
    if result.failure is not None:
        findings.append(failure_finding(result.failure))
        case_file = None if out is None else save_case(result.failure, out)
        if case_file is not None:
            findings[-1]["case_file"] = str(case_file)
    timings = [name for name in _TIMINGS if name in figures]
    return Outcome(
        "explore",
        result.verdict.value,
        figures,
        timings,
        findings,
        seed=seed,
        interrupted=result.interrupted,
        tables=_tables(result, caption),
    )


def _tables(result: CampaignResult, caption: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return discovery and activation, and the page map of a failure."""
    tally = result.tally
    discovery = [
        {"states": states, "distinct_images": images, "distinct_recovered": recovered}
        for states, images, recovered in tally.discovery
    ]
    activation = [
        {"fault": f, "armed": tally.armed[f], "fired": tally.fired[f], "mattered": tally.mattered[f]}
        for f in sorted(tally.armed)
    ]
    tables: dict[str, Mapping[str, Any]] = {
        "discovery": {"rows": discovery, "caption": caption},
        "activation": {"rows": activation, "caption": caption},
    }
    if result.failure is not None:
        tables["page_map"] = {"rows": _page_map(result.failure), "caption": caption}
    return tables


def _page_map(failure: Failure) -> list[dict[str, Any]]:
    with choose_tracker("auto") as tracker:
        shown = page_map(failure.case, tracker=tracker)
    if shown is None:
        return []
    told = failure_finding(failure)
    bug = failure.case.settings.bug
    names = ("sentence", "expected", "found", "token", "settings")
    return [{**shown.document(), **{name: told[name] for name in names}, "bug": bug}]


def text_of(result: CampaignResult) -> str:
    """Return the campaign for people: verdict, numbers, activation table."""
    tally = result.tally
    if result.failure is not None:
        return f"{failure_text(result.failure)}\n\n{tally.all_states:,} states before it\n\nverdict: broken"
    lines = [
        f"{tally.states:,} crash states counted ({tally.all_states:,} in all) from {tally.histories:,} histories "
        f"in {result.seconds:.1f} s: {tally.states / max(result.seconds, 1e-9):,.0f} states/s",
        f"{len(tally.images):,} distinct images, {len(tally.recovered):,} distinct recovered logs, "
        f"{result.repeated} histories repeated and equal, {tally.proven_legal:,} images proven legal",
        "",
        f"{'fault':<20}{'armed':>10}{'fired':>10}{'mattered':>10}",
    ]
    for fault in sorted(tally.armed):
        lines.append(f"{fault:<20}{tally.armed[fault]:>10,}{tally.fired[fault]:>10,}{tally.mattered[fault]:>10,}")
    lines.append("")
    if result.silent:
        lines.append(f"vacuous: {', '.join(result.silent)} never fired; explore longer")
    not_caught = "canary: not tried" if result.interrupted else "canary: no planted bug was caught"
    lines.append(f"canary: {result.canary} caught" if result.canary else not_caught)
    return "\n".join([*lines, f"verdict: {'interrupted' if result.interrupted else result.verdict.value}"])
