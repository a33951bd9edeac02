"""The main job: its steps, their order, and one outcome of all of them."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome
from tornpage.guard import HOME, python_command
from tornpage.properties.interrupts import held_interrupts
from tornpage.properties.judge.rulings import counted
from tornpage.properties.scratch import scratch_directory

if TYPE_CHECKING:
    from tornpage.sim.sweep import PointTables

__all__ = ["STEPS", "Step", "check_beside", "combined", "usual_s"]


@dataclass(frozen=True)
class Step:
    """Name, outcome and sentence of a step. A skipped step has no verdict but a reason."""

    name: str
    outcome: Outcome
    sentence: str
    seconds: float = 0.0

    def row(self) -> dict[str, Any]:
        """Return the row of the steps table, with the measured time if the step has none."""
        return {
            "step": self.name,
            "verdict": self.outcome.verdict or "skipped",
            "sentence": self.sentence,
            "seconds": self.outcome.figures.get("seconds", self.seconds),
        }


# ---- steps that crash the store --------------------------------------------------------------------------------------


CANARY_BUG = "no-erase-after-cut"
KILLS = 100
EXPLORE_STATES = 2_500
CHECK_EXAMPLES = 220


def kills(seed: int) -> Step:
    """Kill real writers. First of all, while the process has no thread."""
    from tornpage.outcomes.exploring import Request, explore_kills

    outcome, _ = explore_kills(Request(kills=KILLS, seed=seed))
    figures = outcome.figures
    sentence = (
        f"{counted(figures['killed'], 'writer')} killed by SIGKILL at "
        f"{counted(figures['distinct_points'], 'distinct step')}"
    )
    return Step("kills", outcome, sentence)


@contextmanager
def check_beside(seed: int) -> Iterator[Callable[[int], Step]]:
    """Compare store and model in another process; yield the step that waits for it.

    It is the longest step, and uses one processor. The process ends with the block, whatever happens in it.
    """
    command = python_command("tornpage", "check", "--examples", str(CHECK_EXAMPLES), "--seed", str(seed), "--json")
    with held_interrupts():  # the process starts with SIGINT blocked: this one ends it
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def check(seed: int) -> Step:
        said, complaint = process.communicate()
        try:
            document = json.loads(said)
        except ValueError:
            lines = complaint.strip().splitlines() or [f"it ended with {process.returncode}"]
            return Step("check", Outcome("check", "harness", {}), f"the process failed: {lines[-1]}")
        figures = document["figures"]
        outcome = Outcome(
            "check", document["verdict"], figures, document["timings"], document["findings"], seed=document["seed"]
        )
        sentence = (
            f"{counted(figures['examples'], 'example')}, {figures.get('ran_put', 0):,} puts, "
            f"{figures.get('ran_crash', 0):,} "
            f"crashes and {sum(name.startswith('ran_') for name in figures) - 2} other kinds of operations"
        )
        return Step("check", outcome, sentence)

    try:
        yield check
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def explore(seed: int) -> Step:
    """Explore crash states."""
    from tornpage.outcomes.exploring import Request, explore_crashes

    outcome, _ = explore_crashes(Request(states=EXPLORE_STATES, seed=seed))
    figures = outcome.figures
    sentence = (
        f"{counted(figures.get('states', 0), 'crash state')}, "
        f"{counted(figures.get('distinct_images', 0), 'distinct image')}"
    )
    return Step("explore", outcome, sentence)


def canary(seed: int) -> Step:
    """Find a planted bug, shrink it, and run it again from its token in another process."""
    from tornpage.outcomes.exploring import Request, explore_crashes

    found, _ = explore_crashes(Request(seconds=30, bug=CANARY_BUG, seed=seed, failures=1))
    if found.verdict != "broken":
        return Step("canary", Outcome("canary", "vacuous", found.figures), f"{CANARY_BUG} was not found")
    failure = found.findings[0]
    again = subprocess.run(
        python_command("tornpage", "replay", failure["token"], "--json"), capture_output=True, text=True, check=False
    )
    replayed = json.loads(again.stdout) if again.returncode == 1 else {}
    same = [finding["sentence"] for finding in replayed.get("findings", ())] == [failure["sentence"]]
    figures = {"operations": len(failure["program"]), "states_to_find": found.figures["all_states"]}
    sentence = (
        f"{CANARY_BUG} found after {counted(figures['states_to_find'], 'state')}, shrunk to "
        f"{counted(figures['operations'], 'operation')}, "
        + ("replayed by token in another process" if same else "but its token does not replay")
    )
    verdict = "holds" if same else "harness"
    return Step("canary", Outcome("canary", verdict, figures, tables=found.tables), sentence)


# ---- steps that read logs back ---------------------------------------------------------------------------------------


WRITTEN = 200
IMAGE_CRASHES = 2
"""File operations of the recovery of each image that it is crashed at."""
GOLDEN = Path(HOME) / "tests" / "data" / "golden" / "01-plain-ascii"
"""A store written by RocketMQ 4.9.3, in a checkout of the project."""


def write_and_read(seed: int) -> Step:
    """Write a log through the public store and read it back with the judges' decoder."""
    from tornpage import Message, MessageStore, MessageStoreConfig
    from tornpage.properties.decode.record import Record
    from tornpage.properties.decode.store import iter_items, look

    with scratch_directory("tornpage-") as directory:
        config = MessageStoreConfig(mapped_file_size_commit_log=16384)
        bodies = [f"message {seed + number} ".encode() * (1 + number % 40) for number in range(WRITTEN)]
        with MessageStore.open(directory, config) as store:
            results = [store.put(Message("Proof", body, properties={"KEYS": f"k{n}"})) for n, body in enumerate(bodies)]
        items = [located.item for located in iter_items(look(Path(directory)))]
    records = [item for item in items if isinstance(item, Record)]
    equal = [(record.offset, record.body) for record in records] == [
        (result.offset, body) for result, body in zip(results, bodies, strict=True)
    ]
    verdict = "holds" if equal else "broken"
    sentence = (
        f"{counted(len(records), 'record')} written by the store, read back by a decoder that shares no code with it"
    )
    return Step("write and read", Outcome("write", verdict, {"records": len(records)}), sentence)


def against_rocketmq(seed: int) -> Step:
    """Recover crash images of RocketMQ 4.9.3, and compare with its own recovery."""
    from tornpage.outcomes.judging import Judging, golden_outcome, judged_golden_images

    name = "against Java"
    if not GOLDEN.exists():
        return Step(name, Outcome("judge", None, {}), "skipped: the stores of RocketMQ come with a checkout only")
    started = perf_counter()
    judging = Judging(bug="", disk="posix-strict", samples=IMAGE_CRASHES, losses=1, seed=seed)
    rows = judged_golden_images(str(GOLDEN.parent), judging)
    outcome = golden_outcome(rows, seed=seed, command="tornpage judge tests/data/golden --golden")
    outcome.figures = {**outcome.figures, "seconds": perf_counter() - started}
    outcome.timings = ["seconds"]
    theirs = sum(bool(row.rocketmq_numbers) for row in rows)
    kept = f"recovers all {len(rows)} correctly" if outcome.verdict == "holds" else "breaks a guarantee"
    sentence = (
        f"{counted(len(rows), 'crash image')} of RocketMQ 4.9.3: tornpage {kept}; RocketMQ itself fails on {theirs}"
    )
    return Step(name, outcome, sentence)


def inspect(seed: int) -> Step:
    """Read a store of RocketMQ 4.9.3, and compare each record with RocketMQ's answer."""
    from tornpage.cli.inspect import inspect_outcome
    from tornpage.properties.inspect import Query

    if not GOLDEN.exists():
        return Step(
            "inspect", Outcome("inspect", None, {}), "skipped: the store of RocketMQ comes with a checkout only"
        )
    outcome, _ = inspect_outcome(str(GOLDEN / "store"), "log", None, Query(limit=None))
    said = json.loads((GOLDEN / "expected.json").read_text())["steps"][1]["state"]["log"]
    rows = outcome.extra["rows"]
    equal = [{name: row[name] for name in answer} for row, answer in zip(rows, said, strict=False)] == said
    verdict = outcome.verdict if equal and len(rows) == len(said) else "broken"
    sentence = f"{counted(len(rows), 'record')} of RocketMQ 4.9.3 read, each as RocketMQ answered"
    return Step("inspect", Outcome("inspect", verdict, outcome.figures, findings=outcome.findings), sentence)


# ---- the simulation step ---------------------------------------------------------------------------------------------


MESSAGES = 20_000
LAW_MESSAGES = 50_000
LAW_ERRORS_MAX = 4.0
"""Standard errors by which a simulated mean may miss its law; by chance once in some 16,000 runs."""
RATES = (1_000.0, 5_000.0, 20_000.0)
SHOWN_RATE = 5_000.0
FILE_BYTES = 1 << 20
DEVICE = "vm-ext4"


def simulate(seed: int) -> Step:
    """Check the simulation against formulas, then sweep flush and preallocation policies."""
    started = perf_counter()
    laws = _laws(seed)
    swept = _sweep(seed)
    misses = [row for row in laws if abs(row["law_errors"]) > LAW_ERRORS_MAX]
    figures: dict[str, float | int] = {
        "points": len(swept),
        "messages": sum(int(point.row["messages"]) for point in swept),
        "law_errors_max": max(abs(row["law_errors"]) for row in laws),
        "seconds": perf_counter() - started,
    }
    findings = [
        {
            "code": "law-missed",
            "severity": "broken",
            "sentence": f"{row['law']}: mean {row['put_mean_us']:.3f} us, formula {row['law_mean_us']:.3f} us, "
            f"{row['law_errors']:.1f} standard errors apart",
        }
        for row in misses
    ]
    told = "; ".join(
        f"{row['law']} mean {row['put_mean_us']:.1f} us, formula {row['law_mean_us']:.1f} us" for row in laws
    )
    sentence = (
        f"{told}; {counted(figures['points'], 'policy', 'policies')} swept over "
        f"{counted(figures['messages'], 'message')}"
    )
    outcome = Outcome(
        "sim", "broken" if misses else "holds", figures, ["seconds"], findings, seed=seed, tables=_tables(swept, seed)
    )
    return Step("simulate", outcome, sentence)


def _laws(seed: int) -> list[dict[str, Any]]:
    """Return the rows of two scenarios with a formula: group commit, and the put lock."""
    from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy
    from tornpage.sim.device.device import PRESETS
    from tornpage.sim.sweep import grid, run_point
    from tornpage.sim.workload import OpenPoisson, Sizes

    rows = []
    for kind, device in ((FlushDiskType.SYNC_FLUSH, "exponential-1ms"), (FlushDiskType.ASYNC_FLUSH, "put-100us")):
        points = grid(
            flushes=[FlushPolicy(kind)],
            allocations=[AllocationPolicy(1)],
            devices=[PRESETS[device]],
            workloads=[OpenPoisson(500.0, Sizes(1024, 1024))],
            file_bytes=[1 << 30],
            messages=LAW_MESSAGES,
            seeds=[seed],
        )
        rows += [dict(run_point(point)) for point in points]
    return rows


def _sweep(seed: int) -> list["PointTables"]:
    from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy
    from tornpage.sim.device.device import PRESETS
    from tornpage.sim.sweep import grid, run_points
    from tornpage.sim.workload import OpenPoisson, Sizes

    points = grid(
        flushes=[
            FlushPolicy(FlushDiskType.SYNC_FLUSH),
            FlushPolicy(FlushDiskType.ASYNC_FLUSH, flush_interval_commit_log=50),
            FlushPolicy(FlushDiskType.ASYNC_FLUSH),
        ],
        allocations=[AllocationPolicy(1), AllocationPolicy(0)],
        devices=[PRESETS[DEVICE]],
        workloads=[OpenPoisson(rate, Sizes(1024, 1024)) for rate in RATES],
        file_bytes=[FILE_BYTES],
        messages=MESSAGES,
        seeds=[seed],
    )
    return list(run_points(points))


def _tables(swept: list["PointTables"], seed: int) -> dict[str, dict[str, Any]]:
    """Return the tables of the report: latency, messages at risk, stalls at file rolls."""
    rates = " ".join(f"--rate {rate:g}" for rate in RATES)
    policies = "--flush sync --flush async --interval-ms 50 --interval-ms 500"
    load = f"{rates} --messages {MESSAGES} --file-size {FILE_BYTES} --device {DEVICE}"
    again = f"tornpage sim sweep {policies} {load} --seed {seed}"
    caption = {"source": f"simulation, device {DEVICE}", "seed": seed, "command": again}
    ahead = [point for point in swept if point.row["allocation"] == "one-ahead"]
    latency = [
        {"policy": point.row["flush"], "latency_us": step["put_us"], "fraction": step["share"]}
        for point in ahead
        if point.row["rate_per_s"] == SHOWN_RATE
        for step in point.put_cdf
    ]
    risk = [
        {
            "policy": point.row["flush"],
            "rate_per_s": point.row["rate_per_s"],
            **{name: point.row[name] for name in ("put_p99_us", "at_risk_messages_mean", "at_risk_messages_p99")},
        }
        for point in ahead
    ]
    stalls = [
        {"allocation": point.row["allocation"], "roll": roll["file_index"], "stall_us": roll["stall_us"]}
        for point in swept
        if point.row["rate_per_s"] == SHOWN_RATE and point.row["flush_disk_type"] == "SYNC_FLUSH"
        for roll in point.rolls
    ]
    shown = {"put_latency": latency, "at_risk": risk, "stalls": stalls}
    return {name: {"rows": rows, "caption": caption} for name, rows in shown.items()}


# ---- steps on Spark --------------------------------------------------------------------------------------------------


SHARDS = 2
STATES_PER_SHARD = 300
DAMAGED_PAGE = 1
PAGE_BYTES = 4096


def _why_not() -> str:
    """Return why Spark cannot run here, or nothing."""
    from tornpage.pipeline.spark.session import SparkUnavailable, require_java, require_packages

    try:
        require_java()
        require_packages("pyspark", "pyarrow", "pandas")
    except SparkUnavailable as error:
        return str(error)
    return ""


def audit(seed: int) -> Step:
    """Audit an unchanged store of RocketMQ, and a copy with one zeroed page."""
    reason = _why_not() or ("" if GOLDEN.exists() else "the store of RocketMQ comes with a checkout only")
    if reason:
        return Step("audit", Outcome("audit", None, {}), f"skipped: {reason}")
    from tornpage.outcomes.auditing import Asked, audit_outcome

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
    from tornpage.outcomes.sharded.campaigns import campaign_outcome
    from tornpage.properties.explore.crashes.campaign import Plan
    from tornpage.properties.program.case import Settings

    plan = Plan(Settings(), seed=seed, states=SHARDS * STATES_PER_SHARD, shard_states=STATES_PER_SHARD)
    spread, _ = campaign_outcome(plan)
    serial, _ = campaign_outcome(plan, engine="serial")
    hashes = (spread.extra["result_hash"], serial.extra["result_hash"])
    verdict = spread.verdict if hashes[0] == hashes[1] else "harness"
    sentence = (
        f"{counted(spread.figures['states'], 'state')} in {SHARDS} Spark tasks; result hash {hashes[0][:12]} "
        + ("equal to that of the serial run" if hashes[0] == hashes[1] else f"differs from the serial {hashes[1][:12]}")
    )
    outcome = Outcome("campaign", verdict, spread.figures, spread.timings, spread.findings, seed=seed)
    return Step("campaign", outcome, sentence)


# ---- the job ---------------------------------------------------------------------------------------------------------


STEPS = {
    kills: 2.0, explore: 14.0, canary: 4.0, write_and_read: 0.2, inspect: 0.2, against_rocketmq: 1.0, simulate: 3.0,
    audit: 14.0, campaign: 20.0,
}  # fmt: skip
"""Steps in order, each with its seconds on a virtual machine of 2 cores, from which the time left is computed.

Each is called with the seed. Real kills come first, since they fork while there is only one thread. `check` runs beside
the steps after it, and is waited for at the end.
"""
CHECK_REST = 5.0
"""Seconds of `check` after the other steps."""


def usual_s() -> list[float]:
    """Return the usual seconds of all steps, the wait for `check` included."""
    return [*STEPS.values(), CHECK_REST]


_WORST_FIRST = ("harness", "broken", "vacuous", "unknown")


def combined(steps: Sequence[Step], *, seed: int, seconds: float, interrupted: bool) -> Outcome:
    """Combine the steps: worst verdict, figures by step, every table once."""
    verdicts = [step.outcome.verdict for step in steps]
    worst = next((verdict for verdict in _WORST_FIRST if verdict in verdicts), "holds")
    figures: dict[str, float | int] = {"seconds": seconds}
    timings = ["seconds"]
    tables = {"steps": {"rows": [step.row() for step in steps]}}
    for step in steps:
        prefix = step.name.replace(" ", "_")
        figures |= {f"{prefix}_{name}": figure for name, figure in step.outcome.figures.items()}
        timings += [f"{prefix}_{name}" for name in step.outcome.timings]
        for name, table in step.outcome.tables.items():
            tables.setdefault(name, dict(table))
    findings = [{"step": step.name, **finding} for step in steps for finding in step.outcome.findings]
    return Outcome("prove", worst, figures, timings, findings, seed=seed, interrupted=interrupted, tables=tables)
