"""All measurements by room, and a run over them that keeps what it has when it is interrupted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench import audit, campaign, group_commit, lab, put, read, recover, sim
from bench.figures import Figure, Machine, Skipped, describe_machine
from bench.sizes import FULL, Sizes

__all__ = ["SUITE", "Measurement", "SuiteResult", "measure"]


class Measurement(Protocol):
    """One figure: measured below a directory for about so many seconds, with so much work in a round."""

    __name__: str

    def __call__(self, directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
        """Return the figure. Raises Skipped, HarnessError, StoreError, OSError."""


SUITE: Mapping[str, Sequence[Measurement]] = {
    "put": (
        put.put_only_1024,
        put.put_keyed_1024,
        put.put_with_dispatch_1024,
        put.put_100,
        put.put_batch32_1024,
        put.get_1024,
        put.pool_1024,
        group_commit.sync_1,
        group_commit.sync_8,
        group_commit.sync_64,
        group_commit.group_commit_64_over_1,
        group_commit.fdatasync_per_s,
        put.memcpy_gb_per_s,
    ),
    "read": (
        read.get_message_1024,
        read.get_message_copy_1024,
        read.query_key_1024,
        read.walk_gb_per_s_1024,
        read.crc_gb_per_s_1024,
    ),
    "recover": (
        recover.recover_gb_per_s_1024,
        recover.open_4gib_s,
        recover.crc_gb_per_s_1024,
        recover.judge_scan_gb_per_s_1024,
    ),
    "lab": (
        lab.states_per_s,
        lab.model_steps_per_s,
        lab.trial_steps_per_s,
        lab.kill_cycles_per_s,
        lab.compare_look_us_16k,
        lab.write_protect_look_us_1m,
    ),
    "sim": (
        sim.reference_messages_per_s,
        sim.fast_messages_per_s,
        sim.traces_equal,
    ),
    "audit": (
        audit.kernel_mb_per_s_1024,
        audit.audit_mb_per_s_1024,
        audit.spark1_mb_per_s_1024,
        audit.spark2_mb_per_s_1024,
        audit.source2_mb_per_s_1024,
        audit.spark2_over_kernel_1024,
        audit.spark_start_s,
        audit.task_ms,
    ),
    "campaign": (
        campaign.campaign_shard_s,
        campaign.spark2_over_multiprocessing,
    ),
}
"""Room to its figures; each is named like the function that measures it, and may stand in several rooms."""


@dataclass
class SuiteResult:
    """What was measured so far, on which machine, and what has to be said about it."""

    machine: Machine
    figures: list[Figure] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    interrupted: bool = False


def measure(
    rooms: Sequence[str],
    directory: str,
    *,
    seconds: float,
    sizes: Sizes = FULL,
    progress: Callable[[str], None] = lambda name: None,
) -> SuiteResult:
    """Take every figure of the rooms, below an existing directory; `progress` is called with each name before it.

    A keyboard interrupt ends the run with the figures it has. Raises HarnessError when a result is wrong, StoreError
    or OSError when the directory cannot be used.
    """
    result = SuiteResult(describe_machine(directory))
    if result.machine.is_memory_disk:
        kind = result.machine.file_system
        result.findings.append(_finding("memory-file-system", f"{kind}: sync figures are meaningless"))
    try:
        for measurement in dict.fromkeys(one for room in rooms for one in SUITE[room]):
            progress(measurement.__name__)
            try:
                result.figures.append(measurement(directory, seconds=seconds, sizes=sizes))
            except Skipped as reason:
                result.findings.append(_finding("skipped", f"{measurement.__name__} was skipped: {reason}"))
    except KeyboardInterrupt:
        result.interrupted = True
    return result


def _finding(code: str, sentence: str) -> dict[str, Any]:
    return {"code": code, "severity": "note", "sentence": sentence}
