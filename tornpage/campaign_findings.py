"""What has to be said about a campaign in shards, as findings and as text."""

from typing import TYPE_CHECKING, Any

from tornpage.document import Outcome

if TYPE_CHECKING:
    from properties.explore.crashes.rows import Row

__all__ = ["findings_of", "text_of"]


def findings_of(
    histories: list["Row"], ends: list["Row"], deaths: list["Row"], silent: list[str]
) -> list[dict[str, Any]]:
    """Return the findings: of shards whose worker died, of histories, of shards, and of what never fired."""
    findings = _deaths(deaths)
    for row in histories:
        if row["verdict"] != "holds":
            findings.append(
                {
                    "code": f"contract-{row['contract']}" if row["contract"] is not None else "harness",
                    "severity": row["verdict"],
                    "sentence": row["sentence"],
                    "history": row["seed"],
                    "token": row["token"],
                    "mix": row["mix"],
                }
            )
    findings += [
        {"code": "no-canary", "severity": "vacuous", "sentence": f"shard {row['shard']}: no planted bug was caught"}
        for row in ends
        if row["verdict"] == "vacuous"
    ]
    if ends:
        findings += [{"code": "never-fired", "severity": "vacuous", "sentence": f"{f} never fired"} for f in silent]
    else:
        findings.append({"code": "no-shards", "severity": "vacuous", "sentence": "no shard was finished"})
    return findings


def text_of(outcome: Outcome, stopped: str) -> str:
    """Return the campaign for people; `stopped` says why it ended early, or is empty."""
    figures = outcome.figures
    lines = [
        f"{figures['states']:,} crash states counted ({figures['all_states']:,} in all) from {figures['histories']:,} "
        f"histories in {figures['shards_complete']} of {figures['shards']} shards, {figures['seconds']:.1f} s",
        f"{figures['distinct_images']:,} images distinct within their histories, {figures['proven_legal']:,} proven "
        f"legal, {figures['repeated_histories']} histories repeated and equal, {figures['canaries']} canaries caught",
    ]
    for finding in outcome.findings[:10]:
        lines.append(f"{finding['severity']}: {finding['code']}: {finding['sentence']}")
        if finding.get("token"):
            lines.append(f"  tornpage replay {finding['token']}")
    if len(outcome.findings) > 10:
        lines.append(f"and {len(outcome.findings) - 10} more findings")
    verdict = "interrupted" if stopped == "interrupted" else outcome.verdict
    return "\n".join([*lines, "", f"result hash: {outcome.extra['result_hash']}", f"verdict: {verdict}"])


def _deaths(rows: list["Row"]) -> list[dict[str, Any]]:
    """Return a finding per shard whose worker died."""
    return [
        {"code": "worker-died", "severity": "harness", "sentence": f"{row['sentence']}; run it again with --resume"}
        for row in rows
    ]
