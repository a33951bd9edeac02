"""Symptom: a deletion of topics during a close had an answer that was not true.

It answered `()` although there were topics, or raised StoreClosed although it had deleted them.

Cause: a store that was being closed was treated like a read-only one, and the store was looked at once more after the
deletion.
Fix: a deletion raises StoreClosed if and only if the close stopped deletions before it.
"""

from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import config, put
from tests.support.impl.stores import open_store
from tornpage.impl.errors import StoreClosed
from tornpage.impl.store import MessageStore


def store_with_a_topic(directory: Path) -> MessageStore:
    store = open_store(directory, config=config())
    put(store, 0)
    store._reput.drain()
    return store


def test_deletion_after_deletions_stopped_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_with_a_topic(tmp_path)
    raised: list[type[Exception]] = []
    stop = store._delivery.stop

    def delete_then_stop() -> None:
        for delete in (
            lambda: store.clean_unused_topics(()),
            lambda: store.clean_unused_lmq_topic("%LMQ%a"),
            store.clean_expired_consume_queues,
        ):
            with pytest.raises(StoreClosed) as caught:
                delete()
            raised.append(caught.type)
        stop()

    monkeypatch.setattr(store._delivery, "stop", delete_then_stop)
    store.close()
    assert raised == [StoreClosed] * 3
    assert list((tmp_path / "consumequeue" / "T").rglob("0000*"))


def test_deletion_before_a_close_answers_the_deleted_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_with_a_topic(tmp_path)
    monkeypatch.setattr(store._retention, "_queues_deleted", store.close)
    assert store.clean_unused_topics(()) == ("T",)
    assert not list((tmp_path / "consumequeue" / "T").rglob("0000*"))


def test_read_only_store_deletes_nothing(tmp_path: Path) -> None:
    store = store_with_a_topic(tmp_path)
    store._lifecycle.become_read_only("test")
    assert store.clean_unused_topics(()) == ()
    store.close()
