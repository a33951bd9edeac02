"""The clean-up under an aimed fault: which files are gone is the disk's affair, which may go is not (contract 10).

A run may end behind any of the files that it may delete, and at one that has left the log and stays on the disk. What
an earlier run has removed may be back with the power: the sync of the directory may have failed.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from model import retention
from model.operations import Clean
from model.state import CommitLog, Hanging
from properties.contract import GuaranteeBroken, observed
from properties.program.log_places import log_files

if TYPE_CHECKING:
    from properties.lockstep.trial import Trial

__all__ = ["clean_under_fault"]

_HOUR_MS = 3_600_000
_RUN_MS = 10_000
_STEPS_MAX = 200


def clean_under_fault(trial: "Trial", operation: Clean) -> CommitLog:
    """Let the clean-up make a run, or what the disk lets it make of it; return the log with what is left."""
    trial.now_ms += operation.after_hours * _HOUR_MS
    if operation.percent:
        trial.surroundings.use_disk(trial.files, operation.percent)
    before = trial.log
    if operation.manual:
        observed("delete_expired_files_manually", trial.store.delete_expired_files_manually)
        before = retention.ask_for_runs(before)
    # dispatch may have come further than anybody knows under a fault, and so may a commit that was broken off
    most, _ = retention.clean(
        replace(before, dispatched_offset=before.end_offset, buffers=()),
        layout=trial.layout,
        now_ms=trial.now_ms,
        percent=trial.surroundings.percent_used(trial.files),
    )
    _makes_a_run(trial)
    begin, file_bytes = trial.store.min_offset, trial.settings.file_bytes
    if begin not in range(before.min_offset, most.min_offset + 1, file_bytes):
        expected = f"a file from {before.min_offset} to {most.min_offset}"
        raise GuaranteeBroken(10, "a clean-up under a fault deletes what may not go", expected, str(begin))
    trial.happened("cleaned_under_a_fault", begin > before.min_offset)
    oldest = _oldest_on_disk(trial, begin)
    hanging = None if oldest == begin else Hanging(oldest, trial.now_ms, trial.now_ms)
    dispatched_offset = max(before.dispatched_offset, begin)
    return replace(
        most,
        min_offset=begin,
        hanging=hanging,
        dispatched_offset=dispatched_offset,
        buffers=before.buffers,
        undecided=before.undecided if begin == before.min_offset else (),  # decided before a file goes
    )


def _makes_a_run(trial: "Trial") -> None:
    """Step the service until its run is over, or broken off by the disk."""
    service, fired = trial.surroundings.service("clean"), trial.files.fired
    if service is None:
        raise GuaranteeBroken(16, "the store lacks a service", "clean", "none of that name")
    for _ in range(_STEPS_MAX):
        found = observed("step", service.step)
        if found is None or found.due_ms is None or (found.failed and trial.files.fired == 0):
            raise GuaranteeBroken(16, "the clean-up gives up on a disk that lets nothing fail", "a run", str(found))
        if found.failed or found.due_ms >= found.now_ms + _RUN_MS:
            trial.files.fault_mattered |= found.failed and trial.files.fired > fired
            return
    raise GuaranteeBroken(16, "a run of the clean-up does not end", found=f"{_STEPS_MAX} steps")


def _oldest_on_disk(trial: "Trial", begin: int) -> int:
    """Return where the log begins on the disk; a file in front of `begin` waits for its removal. No gap is left."""
    bases = sorted(int(path.rpartition("/")[2]) for path in log_files(trial.files.paths()))
    if not bases:
        return begin
    oldest = bases[0]
    if bases != list(range(oldest, bases[-1] + 1, trial.settings.file_bytes)) or oldest > begin:
        raise GuaranteeBroken(10, "a clean-up under a fault leaves a gap in the log", f"from {begin} on", str(bases))
    return oldest
