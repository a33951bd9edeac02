"""Judge delayed delivery: what it must not lose, and where it continues (contract 12).

Contract 13 (properties/judge/progress.py) says which versions of the saved progress may be on the disk.
"""

from tornpage.model import schedule
from tornpage.model.crash import opened, opened_without_queues
from tornpage.model.message import SCHEDULE_TOPIC
from tornpage.model.state import CommitLog, Progress
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.evidence import Evidence
from tornpage.properties.judge.ledgers import DELAY_OFFSETS, version_text, versions_in
from tornpage.properties.judge.rulings import judge

__all__ = [
    "DELAY_JUDGES",
    "delay_effects",
    "delivery_goes_on_where_it_was_saved",
    "nothing_delayed_is_left_out",
    "opened_log",
]


def opened_log(found: Evidence) -> CommitLog:
    """Return the model's log after the recovery.

    Delivery continues at the progress that the disk held before the open.
    """
    if "opened" not in found.cached_logs:
        version = found.versions_before.get(DELAY_OFFSETS, ())
        saved: Progress = version if isinstance(version, tuple) else ()
        before = found.log.changed(saved_delays=saved)
        log = opened(before, layout=found.layout)
        if found.queues_created_late:
            says = tuple(observed("delay_offsets", found.store.delay_offsets).items())
            log = opened_without_queues(before, says, layout=found.layout)
        found.cached_logs["opened"] = log
    return found.cached_logs["opened"]


@judge(12)
def nothing_delayed_is_left_out(found: Evidence) -> None:
    """Contract 12: each delayed message that saved progress has passed has a copy."""
    if found.layout.role == "SLAVE" or not found.versions_before.get(DELAY_OFFSETS):
        return
    left_out = schedule.left_out(opened_log(found), layout=found.layout)
    if left_out:
        level, number = left_out[0]
        raise GuaranteeBroken(12, f"message {number} of delay level {level} has been passed, and its copy is lost")


@judge(12)
def delivery_goes_on_where_it_was_saved(found: Evidence) -> None:
    """Contract 12: each level continues at its saved progress, within the bounds of its queue.

    The file on disk has the same progress, so that it stays right when messages are put past the old end of a queue.
    """
    if found.layout.role == "SLAVE":
        return
    expected = opened_log(found).delays
    progress = tuple(observed("delay_offsets", found.store.delay_offsets).items())
    if progress != expected:
        raise GuaranteeBroken(
            12, "delivery continues at the wrong place", version_text(expected), version_text(progress)
        )
    if DELAY_OFFSETS in found.versions_before:
        durable = versions_in(found.durable.files, (DELAY_OFFSETS,))[DELAY_OFFSETS]
        if durable != expected:
            raise GuaranteeBroken(
                12, "delayOffset.json on disk has other progress", version_text(expected), version_text(durable)
            )


def delay_effects(found: Evidence) -> set[str]:
    """Return the coverage points of a recovery.

    They are delayed messages in the log, and saved progress of delivery.
    """
    effects = {"delays_saved"} if found.versions_before.get(DELAY_OFFSETS) else set()
    if any(topic == SCHEDULE_TOPIC for topic, _ in found.derived.queues):
        effects.add("delayed_in_log")
    return effects


DELAY_JUDGES = (nothing_delayed_is_left_out, delivery_goes_on_where_it_was_saved)
"""In the order in which they run, after the judges that compare the log with the legal ones."""
