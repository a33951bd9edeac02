"""How a time under an aimed fault ends: in a crash or in a close, and in an open that the fault may hit as well.

An open that the disk refuses has to leave the directory as good as it was: the next one, on a disk that lets nothing
fail, is judged as if the first had never been. An open that succeeds although something failed under it is judged as
any other.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from impl.errors import StoreError
from impl.store import MessageStore
from model import progress, schedule
from model.operations import Crash
from model.state import CommitLog
from properties.contract import GuaranteeBroken, observed
from properties.judge.judges import LegalLogs
from properties.judge.progress_judges import CONSUMER_FILES
from properties.judge.progress_ledger import DELAY_OFFSETS, LegalVersions, Said
from properties.lockstep.under_fault import close_under_fault, count_faults

if TYPE_CHECKING:
    from properties.lockstep.trial import Trial

__all__ = ["crash_under_fault", "open_under_fault"]


def crash_under_fault(trial: "Trial", crash: Crash) -> None:
    """Crash, and open as `open_under_fault` does."""
    window, old = trial.windows[-1], trial.files
    before = window.at_power_loss(at_rest=crash.back == 0) if crash.kill else None
    trial.now_ms += crash.later_ms
    disk, legal, versions = trial.after_crash(crash)
    disk.aimed, disk.fault_mattered, trial.files = old.aimed, old.fault_mattered, disk
    _open(trial, legal, versions, before=before)


def open_under_fault(trial: "Trial") -> None:
    """Close if need be, open under the fault, and open again without it if that is refused."""
    if not trial.closed:
        close_under_fault(trial)
    before = trial.log
    sound = replace(before, poisoned=False)
    trial.surroundings.use_disk(trial.files, 0)
    _open(trial, trial.legal_between(sound, sound, kill=not before.poisoned), trial.versions_now(), before=before)


def _open(trial: "Trial", legal: LegalLogs, versions: LegalVersions, *, before: CommitLog | None) -> None:
    """Open under the fault, judge what has opened, or open again without the fault and judge that."""
    disk, records = trial.files, len(trial.log.records)
    first, fired, said = len(disk.events), disk.fired, trial.said_on(disk)
    store, refusal = _tried(trial, fired=fired)
    faults, disk.aimed = tuple(disk.aimed), ()
    if store is not None:
        late = _catches_up(trial, store)
        found = trial.judged_open(store, disk, legal, versions, said, queues_came_late=late)
        trial.surroundings.give_up(trial.recovers_again(found).store)
    else:
        if leaks := disk.leaks():
            raise GuaranteeBroken(11, "a refused open still holds files", "nothing", "; ".join(leaks))
        found = trial.recover(disk, legal, _or_corrected(trial, legal, versions))
    trial.adopt(found, first=first, before=before)
    mattered = disk.fault_mattered or bool(refusal)
    count_faults(trial, faults, mattered=mattered or len(trial.log.records) < records)


def _tried(trial: "Trial", *, fired: int) -> tuple[MessageStore | None, str]:
    """Open on the failing disk; return the store, or why there is none, which has to be the disk's doing.

    A store that opens read-only for it is as good as refused.
    """
    disk = trial.files
    try:
        store = trial.open_on(disk)
    except GuaranteeBroken as refusal:
        if disk.fired == fired or not isinstance(refusal.__cause__, OSError | StoreError):
            raise
        return None, str(refusal)
    if store.read_only_reason is None or disk.fired == fired:
        return store, ""
    store.close()
    return None, store.read_only_reason


def _catches_up(trial: "Trial", store: MessageStore) -> bool:
    """Let dispatch do what the disk has refused to the open, if there is anything: it opens when queues and index can
    wait for that.
    """
    service = trial.surroundings.service_of(store, "reput")
    if service is None:
        raise GuaranteeBroken(16, "the store lacks a service", "reput", "none of that name")
    is_late = service.is_woken or service.due_ms is not None
    if is_late:
        observed("step", service.step)
    return is_late


def _or_corrected(trial: "Trial", legal: LegalLogs, versions: LegalVersions) -> LegalVersions:
    """Return what progress files may say behind an open that may have corrected them for any of the legal logs."""
    ends = {log.end_offset for log in legal.values()}
    corrected = {path: _corrected(trial, said, ends) for path, said in versions.items() if path in CONSUMER_FILES}
    corrected[DELAY_OFFSETS] = _of_levels(trial, versions.get(DELAY_OFFSETS, ()), legal)
    return {path: said | corrected.get(path, frozenset()) for path, said in versions.items()}


def _of_levels(trial: "Trial", versions: Iterable[Said], legal: LegalLogs) -> frozenset[Said]:
    """Return saved progress of delay levels as an open brings it within the bounds of their queues."""
    return frozenset(
        schedule.opened(replace(log, saved_delays=said), layout=trial.layout).saved_delays
        for said in versions
        for log in legal.values()
        if isinstance(said, tuple)
    )


def _corrected(trial: "Trial", versions: Iterable[Said], ends: Iterable[int]) -> frozenset[Said]:
    found = set()
    for said in versions:
        for end_offset in ends:

            def end_of(topic: str, queue_id: int, end_offset: int = end_offset) -> int:
                return trial.derived.end_of((topic, queue_id), end_offset)

            if isinstance(said, tuple):
                found.add(progress.corrected(said, end_of=end_of))
    return frozenset(found)
