"""Steps on Spark: an audit that finds a damage made a minute before, and a campaign that equals the serial one."""

import shutil
from pathlib import Path
from typing import Any

from properties.scratch import scratch_directory
from tornpage.document import Outcome
from tornpage.steps.step import Step
from tornpage.steps.stores import GOLDEN

__all__ = ["audit", "campaign"]

SHARDS = 2
STATES_PER_SHARD = 300
DAMAGED_PAGE = 1
PAGE_BYTES = 4096


def _why_not() -> str:
    """Return why Spark cannot run here, or nothing."""
    from pipeline.session import SparkUnavailable, require_java, require_packages

    try:
        require_java()
        require_packages("pyspark", "pyarrow", "pandas")
    except SparkUnavailable as error:
        return str(error)
    return ""


def audit(seed: int) -> Step:
    """Audit a store of RocketMQ as it is, and a copy in which one page was zeroed."""
    reason = _why_not() or ("" if GOLDEN.exists() else "the store of RocketMQ comes with a checkout only")
    if reason:
        return Step("audit", Outcome("audit", None, {}), f"skipped: {reason}")
    from tornpage.auditing import Asked, audit_outcome

    with scratch_directory("tornpage-") as directory:
        sound, harmed = Path(directory) / "sound", Path(directory) / "harmed"
        for copy in (sound, harmed):
            shutil.copytree(GOLDEN / "store", copy)
        _zero_a_page(harmed / "commitlog" / f"{0:020d}")
        outcome, _ = audit_outcome((str(sound), str(harmed)), Asked(engine="tasks"))
    verdicts = {Path(said["store"]).name: said["verdict"] for said in outcome.extra["stores"]}
    rows = [_audit_row(name, verdicts[name], outcome) for name in ("sound", "harmed")]
    page = range(DAMAGED_PAGE * PAGE_BYTES, (DAMAGED_PAGE + 1) * PAGE_BYTES)
    named = [finding for finding in rows[1]["findings"] if _is_near(finding, page)]
    right = verdicts == {"sound": "holds", "harmed": "broken"} and bool(named)
    sentence = (
        f"an undamaged store holds; {named[0]['code']} at offset {named[0]['offset']} for the page just zeroed"
        if right
        else f"the audit said {verdicts} about a sound store and one with a zeroed page"
    )
    caption = {"source": "audit on Spark, local[2]", "seed": seed, "command": "tornpage audit STORE"}
    told = Outcome(
        "audit",
        "holds" if right else "broken",
        outcome.figures,
        outcome.timings,
        tables={"audit": {"rows": rows, "caption": caption}},
    )
    return Step("audit", told, sentence)


def _zero_a_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[DAMAGED_PAGE * PAGE_BYTES : (DAMAGED_PAGE + 1) * PAGE_BYTES] = bytes(PAGE_BYTES)
    path.write_bytes(data)


def _audit_row(name: str, verdict: str, outcome: Outcome) -> dict[str, Any]:
    what = {"sound": "store of RocketMQ 4.9.3", "harmed": f"the same with page {DAMAGED_PAGE} of its log zeroed"}
    columns = ("code", "severity", "file", "offset", "message")
    findings = [
        {column: finding[column] for column in columns}
        for finding in outcome.findings
        if Path(finding["store"]).name == name
    ]
    return {"store": name, "what": what[name], "verdict": verdict, "findings": findings}


def _is_near(finding: dict[str, Any], page: range) -> bool:
    """A record that begins before the page can be the first one harmed."""
    offset = finding["offset"]
    return finding["severity"] == "damage" and offset is not None and page.start - 200 < offset < page.stop


def campaign(seed: int) -> Step:
    """Explore in Spark tasks and serially; the result hashes must be equal."""
    reason = _why_not()
    if reason:
        return Step("campaign", Outcome("campaign", None, {}), f"skipped: {reason}")
    from tornpage.commands.campaign import campaign_outcome

    spread, _ = campaign_outcome(SHARDS, STATES_PER_SHARD, seed=seed)
    serial, _ = campaign_outcome(SHARDS, STATES_PER_SHARD, seed=seed, engine="serial")
    hashes = (spread.extra["result_hash"], serial.extra["result_hash"])
    verdict = spread.verdict if hashes[0] == hashes[1] else "harness"
    sentence = f"{spread.figures['states']:,} states in {SHARDS} Spark tasks; result hash {hashes[0][:12]} " + (
        "equal to that of the serial run" if hashes[0] == hashes[1] else f"differs from the serial {hashes[1][:12]}"
    )
    outcome = Outcome("campaign", verdict, spread.figures, spread.timings, spread.findings, seed=seed)
    return Step("campaign", outcome, sentence)
