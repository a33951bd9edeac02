"""What befalls the files of a closed store behind its back, and what the next open has to make of it (contract 7)."""

from dataclasses import replace
from typing import TYPE_CHECKING

from impl.store import MessageStore
from model.operations import Damage, HarmDerived
from properties.contract import GuaranteeBroken, observed
from properties.disk.disk import Image
from properties.disk.page_versions import earlier_contents
from properties.judge.progress_ledger import ProgressLedger, said_by
from properties.lockstep.damage import Lost, damaged_image
from properties.lockstep.damaged_reads import readers_get_what_verifies
from properties.lockstep.derived_damage import harmed_image
from properties.program.log_places import log_files

if TYPE_CHECKING:
    from properties.lockstep.trial import Trial

__all__ = ["damage", "harm_derived"]


def harm_derived(trial: "Trial", harm: HarmDerived) -> None:
    """Harm a file that the log can do without: the store opens read-write, with everything made anew (contract 7)."""
    if trial.log.poisoned:
        return
    trial.files.mend()
    trial.close()
    harmed = harmed_image(
        harm,
        trial.durable(trial.files),
        trial.files.base,
        min_offset=trial.log.min_offset,
        index_slots=trial.settings.index_slots,
        tags_codes=_tags_codes(trial),
    )
    if harmed is None or (harm.file == "queue" and trial.has_a_queue_of_numbers_only()):
        trial.open()
        return
    before, is_noticed = trial.log, harmed.is_noticed and trial.store.read_only_reason is None
    files, trial.was_harmed = trial.new_disk(harmed.image), True
    found = trial.recover(files, trial.legal_between(before, before, kill=True), trial.versions_now())
    named = [finding.severity for finding in found.store.findings]
    if "damage" in named or (is_noticed and not named):
        expected = "a note" if is_noticed else "no damage"
        raise GuaranteeBroken(7, f"a {harm.file} file that is {harm.harm} is not named", expected, str(named))
    trial.go_on_with(found, files)
    trial.happened(f"{harm.file}_{harm.harm}")


def _tags_codes(trial: "Trial") -> dict[int, int]:
    """Return the tags code of each message that queues know, by its physical offset."""
    units = (unit for memory in trial.derived.queues.values() for unit in memory.units)
    return {unit.record.offset: unit.tags_code for unit in units}


def damage(trial: "Trial", operation: Damage) -> None:
    """Damage the log of the closed store: it serves what verifies.

    Where the whole log is checked it opens read-only besides, names the place, and changes nothing.
    """
    if trial.log.poisoned or not trial.log.retained or trial.log.hanging is not None:
        return
    trial.files.mend()
    trial.close()
    harmed = damaged_image(
        operation,
        trial.durable(trial.files),
        replace(trial.log, records=trial.log.retained),
        earlier=earlier_contents(trial.files, log_files(trial.files.paths())),
        file_bytes=trial.settings.file_bytes,
        trailer=trial.settings.trailer,
    )
    if harmed is None or trial.log.flushed_offset < trial.log.end_offset:  # a close has failed: not all is on the disk
        trial.open()
        return
    image, lost = harmed
    beside = _beside(trial, operation, image)
    image, is_complete = (image, True) if beside is None else (beside, False)
    files = trial.new_disk(image)
    store = trial.open_on(files, whole_log=True)
    if store.read_only_reason is None:
        raise GuaranteeBroken(7, f"damage at offset {lost.offset} goes unnoticed", "read-only", "read-write")
    named = [finding for finding in store.findings if finding.severity == "damage"]
    if not any(lost.offset <= finding.offset <= lost.end_offset for finding in named):
        raise GuaranteeBroken(7, f"no finding names the damage at offset {lost.offset}", found=str(named))
    _serves_what_verifies(trial, store, lost, is_complete=is_complete)
    _serves_what_verifies(trial, trial.open_on(trial.last_disk(image)), lost, is_complete=is_complete)
    store.close()
    if trial.durable(files).files != {**image.files}:
        raise GuaranteeBroken(7, "a damaged store was changed by opening it")
    trial.files, trial.closed, trial.windows = trial.new_disk(trial.durable(trial.files)), True, []
    trial.store = store
    trial.versions = ProgressLedger(said_by(image.files, trial.versions.paths))  # the close had saved what was new
    trial.end_verb(0, trial.log)
    trial.happened(f"damaged_{operation.kind}")
    trial.happened("damaged_beside", not is_complete)


def _beside(trial: "Trial", operation: Damage, image: Image) -> Image | None:
    """Return the damaged image with the file beside the log harmed too, or None if it is not."""
    if not operation.beside:
        return None
    harm = HarmDerived(operation.beside, operation.beside_harm, number=operation.record, amount=operation.amount)
    min_offset, index_slots = trial.log.min_offset, trial.settings.index_slots
    harmed = harmed_image(harm, image, trial.files.base, min_offset=min_offset, index_slots=index_slots)
    return None if harmed is None else harmed.image


def _serves_what_verifies(trial: "Trial", store: MessageStore, lost: Lost, *, is_complete: bool) -> None:
    """Whether an open has met the damage or not, no byte is served that fails a check, and every other one is.

    Readers of queues and keys get all of it where queues and index were harmed neither (`is_complete`).
    """
    served = {message.offset for message in observed("messages", lambda: list(store.messages()))}
    expected = {record.offset for record in trial.log.retained if lost.spares(record)}
    if served != expected:
        raise GuaranteeBroken(7, "a damaged store serves the wrong records", str(expected), str(served))
    readers_get_what_verifies(
        store,
        trial.derived,
        lost,
        begin=trial.log.min_offset,
        end=trial.log.end_offset,
        stored=trial.ledger.stored,
        is_complete=is_complete,
    )
