"""All measurements by room, and a run over them.

An interrupted run keeps its results, and so does one in which a room fails.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tornpage.bench import audit, campaign, group_commit, lab, put, read, recover, replication, sim, targets
from tornpage.bench.figures import Figure, Machine, Skipped, describe_machine
from tornpage.bench.sizes import FULL, Sizes
from tornpage.impl.errors import StoreError
from tornpage.pipeline.spark.jobs import reason_of, spark_failures
from tornpage.properties.contract import HarnessError

__all__ = ["SUITE", "Failed", "Measurement", "SuiteResult", "measure"]


class Measurement(Protocol):
    """One figure, measured below a directory for about `seconds`, by rounds of given work."""

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
    "replication": (
        replication.replica_async_1024,
        replication.replica_sync64_1024,
        replication.replica_sync64_cpu_us,
        replication.replica_transfer_mb_per_s,
        replication.replica_first_confirmed_s,
        replication.replica_lag_ms,
        replication.replica_async_over_java_1024,
        replication.replica_sync64_over_java_1024,
        replication.java_first_confirmed_s,
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
    "target": (
        targets.target_python_states_per_s,
        targets.target_python_open_states_per_s,
        targets.target_c_states_per_s,
        targets.target_c_open_states_per_s,
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
        audit.group_by_topic2_over_kernel_1024,
        audit.topics2_over_kernel_1024,
        audit.spark_start_s,
        audit.task_ms,
    ),
    "campaign": (
        campaign.campaign_shard_s,
        campaign.spark2_over_multiprocessing,
    ),
}
"""The figures of each room.

A figure has the name of the function that measures it, and may be in several rooms.
"""


@dataclass(frozen=True, slots=True)
class Failed:
    """A room that ended at one of its figures.

    Either the harness failed, or the directory could not be used.
    """

    room: str
    figure: str
    reason: str
    is_harness: bool


@dataclass
class SuiteResult:
    """The results so far: figures, machine, notes, and failed rooms."""

    machine: Machine
    figures: list[Figure] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    interrupted: bool = False


def measure(
    rooms: Sequence[str],
    directory: str,
    *,
    seconds: float,
    sizes: Sizes = FULL,
    progress: Callable[[str], None] = lambda name: None,
) -> SuiteResult:
    """Take every figure of the rooms, below an existing directory.

    `progress` is called with each name first. A keyboard interrupt ends the run and keeps its figures. A room ends if a
    result is wrong, Spark fails or the directory cannot be used, and the next one begins.
    """
    result = SuiteResult(describe_machine(directory))
    if result.machine.is_memory_disk:
        kind = result.machine.file_system
        result.findings.append(_finding("memory-file-system", f"{kind}: sync figures are meaningless"))
    begun: set[str] = set()
    try:
        for room in rooms:
            for measurement in SUITE[room]:
                name = measurement.__name__
                if name in begun:
                    continue
                begun.add(name)
                progress(name)
                try:
                    result.figures.append(measurement(directory, seconds=seconds, sizes=sizes))
                except Skipped as reason:
                    result.findings.append(_finding("skipped", f"{name} was skipped: {reason}"))
                except Exception as error:
                    result.failed.append(_failed(room, name, error))
                    break
    except KeyboardInterrupt:
        result.interrupted = True
    return result


def _failed(room: str, name: str, error: Exception) -> Failed:
    """Return the failure of a room; raise errors that no measurement may raise."""
    if isinstance(error, spark_failures()):
        return Failed(room, name, reason_of(error), is_harness=True)
    if isinstance(error, OSError):
        return Failed(room, name, error.strerror or str(error), is_harness=False)
    if isinstance(error, HarnessError | StoreError):
        return Failed(room, name, str(error), is_harness=isinstance(error, HarnessError))
    raise error


def _finding(code: str, sentence: str) -> dict[str, Any]:
    return {"code": code, "severity": "note", "sentence": sentence}
