"""Test offsets of consumer groups in the model: validity, saves and recovery."""

from dataclasses import replace

from tornpage.model.progress import (
    ConsumerProgress,
    commit,
    corrected,
    delete_topics,
    diff_total,
    least_offsets,
    loaded,
    query,
    save,
    save_round,
)

KEY, OTHER = ("T", "g", 0), ("U", "g", 0)
END = 5


def end_of(topic: str, queue_id: int) -> int:
    return END if topic == "T" and queue_id < 2 else 0


def committed(*offsets: int, group: str = "g", light: bool = False, queue_id: int = 0) -> ConsumerProgress:
    progress = ConsumerProgress()
    for offset in offsets:
        progress, _ = commit(progress, group, "T", queue_id, offset, end_of=end_of, light=light)
    return progress


def test_the_last_commit_counts_up_to_the_end() -> None:
    assert committed(3, 1).committed == ((KEY, 1),)
    assert committed(9).committed == ((KEY, END),)
    assert commit(ConsumerProgress(), "g", "nobody", 0, 3, end_of=end_of, light=False)[1] == 0


def test_a_light_group_has_one_number_where_there_are_light_groups() -> None:
    assert committed(3, group="%LMQ%g", queue_id=1, light=True).committed == ((("T", "%LMQ%g", 0), 3),)
    assert committed(3, group="%LMQ%g", queue_id=1).committed == ((("T", "%LMQ%g", 1), 3),)


def test_who_has_committed_nothing_begins_at_the_first_message_if_it_is_there() -> None:
    assert query(committed(3), "g", "T", 0, begin=2, light=False) == 3
    assert query(committed(3), "h", "T", 0, begin=0, light=False) == 0
    assert query(committed(3), "h", "T", 0, begin=2, light=False) is None
    assert query(committed(3), "h", "T", 0, begin=0, light=False, is_in_disk=True) is None


def test_lag_and_least_offsets() -> None:
    progress = commit(committed(3), "h", "T", 0, 1, end_of=end_of, light=False)[0]
    assert diff_total(progress, "g", "T", ends=((0, END), (1, END))) == 2 + END
    assert least_offsets(progress, "T", begin_of=lambda *_: 0) == {0: 1}
    assert least_offsets(progress, "T", begin_of=lambda *_: 2) == {0: 3}
    assert least_offsets(progress, "T", begin_of=lambda *_: 0, without=("h",)) == {0: 3}


def test_a_round_saves_what_has_changed_and_is_due_again_sooner_after_a_failure() -> None:
    saved = save_round(committed(3), now_ms=0, poisoned=False)
    assert (saved.saved, saved.is_changed, saved.due_ms) == (((KEY, 3),), False, 5_000)
    failed = save_round(committed(3), now_ms=0, poisoned=False, sync_fails=True)
    assert (failed.saved, failed.is_changed, failed.due_ms) == ((), True, 1_000)
    assert save_round(failed, now_ms=999, poisoned=False) == failed
    assert save_round(failed, now_ms=1_000, poisoned=False).saved == ((KEY, 3),)


def test_nothing_is_saved_by_a_poisoned_store_and_nothing_fails_without_a_change() -> None:
    assert save_round(committed(3), now_ms=0, poisoned=True).saved == ()
    assert save_round(ConsumerProgress(), now_ms=0, poisoned=False, sync_fails=True).due_ms == 5_000
    unchanged = replace(committed(3), is_changed=False)
    assert save(unchanged) == unchanged


def test_a_recovery_brings_back_what_lies_beyond_and_saves_it() -> None:
    offsets = ((KEY, 9), (("T", "h", 0), 2), (OTHER, 1))
    there = ((KEY, END), (("T", "h", 0), 2), (OTHER, 0))
    assert corrected(offsets, end_of=end_of) == there
    assert loaded(offsets, end_of=end_of) == ConsumerProgress(committed=there, saved=there)


def test_a_deleted_topic_is_saved_as_0_and_forgotten() -> None:
    progress = ConsumerProgress(((KEY, 3), (OTHER, 1)), ((KEY, 3), (OTHER, 1)))
    after = delete_topics(progress, ("T",))
    assert after == ConsumerProgress(((OTHER, 1),), ((KEY, 0), (OTHER, 1)), is_changed=True)
    assert delete_topics(progress, ()) == progress
    assert delete_topics(progress, ("V",)) == progress


def test_what_memory_knows_to_be_0_and_the_disk_does_not_is_saved_too() -> None:
    progress = ConsumerProgress(((KEY, 0),), ((KEY, 3),), is_changed=True)
    assert delete_topics(progress, ("T",)).saved == ((KEY, 0),)
    unsaved = ConsumerProgress(((KEY, 0),), ((KEY, 0),))
    assert delete_topics(unsaved, ("T",)) == ConsumerProgress((), ((KEY, 0),), is_changed=True)
