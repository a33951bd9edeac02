"""What befalls the saved progress of delayed messages, and the role of a store: somebody else writes, or takes over."""

from dataclasses import replace
from typing import TYPE_CHECKING

from model import schedule
from model.operations import ChangeRole, DelayOffsetsAre
from model.state import CommitLog, Progress
from properties.contract import GuaranteeBroken
from properties.disk.disk import Image
from properties.judge.progress_ledger import DELAY_OFFSETS, said_by, torn_in

if TYPE_CHECKING:
    from properties.lockstep.trial import Trial

__all__ = ["change_role", "write_delay_offsets"]

BACKUP = f"{DELAY_OFFSETS}.bak"
GARBAGE = b"{ no JSON"


def change_role(trial: "Trial", operation: ChangeRole) -> None:
    """Close, and open in another role; whoever becomes a master goes on where the disk says."""
    if trial.log.poisoned or trial.waits_for_answers:
        return
    trial.files.mend()
    trial.close()
    trial.take_role(operation.role)
    trial.open()
    trial.happened(f"became_{operation.role}")


def write_delay_offsets(trial: "Trial", operation: DelayOffsetsAre) -> None:
    """Let somebody else write the progress; who opens goes on from there, within the bounds of the queues."""
    if trial.log.poisoned or trial.waits_for_answers:
        return
    trial.files.mend()
    if not trial.closed and trial.layout.role == "SLAVE":
        _write_beside(trial, operation)
    else:
        trial.close()
        _open_with(trial, operation)


def _moved(trial: "Trial", operation: DelayOffsetsAre) -> Progress:
    levels = dict.fromkeys(schedule.units_of_levels(trial.log, trial.layout), 0) | dict(trial.log.delays)
    return tuple(sorted((level, max(0, number + operation.by)) for level, number in levels.items()))


def _write_beside(trial: "Trial", operation: DelayOffsetsAre) -> None:
    """Write it, durably, as a slave gets it from its master while it is open."""
    first, files, table = len(trial.files.events), trial.files, _moved(trial, operation)
    if DELAY_OFFSETS in files.paths():
        files.unlink(DELAY_OFFSETS)
    file = files.create(DELAY_OFFSETS)
    files.pwrite(file, _written(table), 0)
    files.sync(file)
    files.close(file)
    files.sync_directory(DELAY_OFFSETS.rpartition("/")[0])
    trial.end_verb(first, _given(trial, table))
    trial.windows = [replace(trial.windows[-1], first=trial.windows[-1].last)]  # no crash falls into it
    trial.happened("slave_was_sent_progress")


def _open_with(trial: "Trial", operation: DelayOffsetsAre) -> None:
    """Open the closed store with another file."""
    durable = trial.durable(trial.files)
    stored = dict(durable.files)
    match operation.kind:
        case "moved":
            stored[DELAY_OFFSETS] = _written(_moved(trial, operation))
        case "lost":
            stored.pop(DELAY_OFFSETS, None)
        case "garbage":
            stored |= dict.fromkeys({DELAY_OFFSETS, BACKUP} & stored.keys(), GARBAGE)
    said = said_by(stored, trial.versions.paths)
    saved = said[DELAY_OFFSETS]
    assert isinstance(saved, tuple)
    given = _given(trial, saved)
    versions = {path: frozenset((each,)) for path, each in said.items()}
    trial.torn_files = torn_in(stored, trial.versions.paths)
    files = trial.new_disk(Image(durable.directories, stored))
    found = trial.recover(files, trial.legal_between(given, given, kill=True), versions)
    trial.go_on_with(found, files)
    is_corrected = trial.log.delays != saved
    named = {finding.code for finding in trial.store.findings}
    if is_corrected and "progress_corrected" not in named:
        raise GuaranteeBroken(7, "delay offsets are corrected, and nobody is told", "a note", str(sorted(named)))
    trial.happened("delay_offsets_corrected", is_corrected)
    trial.happened(f"delay_offsets_{operation.kind}")


def _given(trial: "Trial", table: Progress) -> CommitLog:
    """Return the log with progress that somebody else has written: what that passes is nobody's any more."""
    log = replace(trial.log, saved_delays=table)
    if trial.layout.role == "SLAVE":
        within = schedule.loaded(log, table, layout=trial.layout)
        return replace(schedule.passed_by(replace(log, delays=within), layout=trial.layout), delays=table)
    return schedule.passed_by(schedule.opened(log, layout=trial.layout), layout=trial.layout)


def _written(table: Progress) -> bytes:
    """Return a file that says so, as RocketMQ writes it."""
    levels = ",".join(f"{level}:{number}" for level, number in table)
    return ('{\n\t"offsetTable":{' + levels + ("\n\t" if levels else "") + "}\n}").encode()
