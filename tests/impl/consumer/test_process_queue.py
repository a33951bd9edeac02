"""Test the cache of one queue. Spec: consumers, section 4."""

from tests.support.impl.consumers import cached_message
from tornpage.impl.consumer.process_queue import NOTHING, ProcessQueue


def filled(*offsets: int, max_offset: int = 0) -> ProcessQueue:
    queue = ProcessQueue()
    queue.put_message([cached_message(offset, max_offset=max_offset) for offset in offsets])
    return queue


def test_put_counts_new_offsets_only() -> None:
    queue = filled(5, 6)
    assert not queue.put_message([cached_message(6, body=b"longer"), cached_message(7)])
    assert (queue.msg_count, queue.msg_size, queue.queue_offset_max) == (3, 3, 7)
    assert list(queue.msg_tree_map) == [5, 6, 7]
    assert queue.msg_tree_map[6].body == b"longer"


def test_put_starts_consuming_once() -> None:
    queue = ProcessQueue()
    assert not queue.put_message([])
    assert queue.put_message([cached_message(0)])
    assert queue.consuming
    assert not queue.put_message([cached_message(1)])


def test_accumulated_messages_are_those_after_the_last_one() -> None:
    queue = filled(5, 6, max_offset=10)
    assert queue.msg_acc_cnt == 4
    queue.put_message([cached_message(9, max_offset=9)])
    assert queue.msg_acc_cnt == 4


def test_progress_is_the_smallest_offset_that_is_left() -> None:
    queue = filled(5, 6, 8)
    assert queue.remove_message([queue.msg_tree_map[6]], 77) == 5
    assert queue.remove_message([cached_message(5)], 77) == 8
    assert queue.remove_message([cached_message(8)], 77) == 9
    assert (queue.msg_count, queue.msg_size, queue.last_consume_timestamp) == (0, 0, 77)
    assert queue.remove_message([cached_message(8)], 78) == NOTHING


def test_size_is_lowered_by_the_cached_body() -> None:
    queue = filled(5)
    queue.remove_message([cached_message(5, body=b"another")], 0)
    assert queue.msg_size == 0


def test_old_message_does_not_lower_the_progress() -> None:
    queue = filled(5, 6)
    queue.remove_message([cached_message(5), cached_message(6)], 0)
    queue.put_message([cached_message(3)])
    assert queue.queue_offset_max == 6
    assert queue.remove_message([cached_message(3)], 0) == 7


def test_span_is_the_difference_of_last_and_first() -> None:
    assert filled(5, 6, 30).max_span == 25
    assert ProcessQueue().max_span == 0


def test_take_commit_and_roll_back() -> None:
    queue = filled(5, 6, 8)
    assert [each.queue_offset for each in queue.take_messages(2, 9)] == [5, 6]
    assert (queue.msg_count, list(queue.msg_tree_map), queue.last_consume_timestamp) == (3, [8], 9)
    queue.rollback()
    assert list(queue.msg_tree_map) == [5, 6, 8]
    queue.take_messages(2, 9)
    assert queue.commit() == 7
    assert (queue.msg_count, queue.msg_size) == (1, 1)


def test_commit_of_nothing_returns_nothing() -> None:
    assert ProcessQueue().commit() == NOTHING


def test_take_of_nothing_ends_consuming() -> None:
    queue = filled(5)
    queue.take_messages(1, 0)
    assert queue.consuming
    assert queue.take_messages(1, 0) == []
    assert not queue.consuming


def test_some_taken_messages_are_put_back() -> None:
    queue = filled(5, 6)
    taken = queue.take_messages(2, 0)
    queue.make_message_to_consume_again(taken[1:])
    assert (list(queue.msg_tree_map), list(queue.consuming_msg_orderly_tree_map)) == ([6], [5])
    assert queue.has_temp_message()


def test_finished_part_of_a_batch_moves_the_progress_to_the_rest() -> None:
    queue = filled(5, 6, 7)
    taken = queue.take_messages(2, 0)
    queue.make_message_to_consume_again(taken[1:])
    assert queue.finish_taken(taken[:1]) == 6
    queue.take_messages(2, 0)
    assert queue.finish_taken(taken[1:]) == 7
    assert queue.commit() == 8
    assert queue.finish_taken([]) == 8


def test_cut_forgets_what_was_not_consumed() -> None:
    queue = filled(5, 6, 8, 9)
    assert queue.cut(8) == 8
    assert (queue.msg_count, queue.msg_size) == (2, 2)
    queue.remove_message([cached_message(5)], 0)
    assert queue.remove_message([cached_message(6)], 0) == 8
    assert queue.cut(8) is None


def test_lock_and_pull_expire() -> None:
    queue = ProcessQueue(1_000)
    assert not queue.is_lock_expired(31_000)
    assert queue.is_lock_expired(31_001)
    assert not queue.is_pull_expired(121_000)
    assert queue.is_pull_expired(121_001)


def test_clear_forgets_all() -> None:
    queue = filled(5, 6)
    queue.take_messages(1, 0)
    queue.clear()
    assert (queue.msg_count, queue.msg_size, queue.queue_offset_max) == (0, 0, 0)
    assert not queue.msg_tree_map
    assert not queue.consuming_msg_orderly_tree_map
