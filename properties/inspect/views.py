"""Define the views of a store, by name."""

from __future__ import annotations

import os
from typing import Final

from tornpage.properties.decode.opening import InspectError, open_view
from tornpage.properties.decode.store import StoreView
from tornpage.properties.inspect.groups import group_rows
from tornpage.properties.inspect.index import index_chain, index_entries, index_files
from tornpage.properties.inspect.keys import by_key
from tornpage.properties.inspect.log import more_or_none
from tornpage.properties.inspect.lookups import by_id, by_time, in_log
from tornpage.properties.inspect.place import Document, Progress, without_progress
from tornpage.properties.inspect.query import Query, parse_queue
from tornpage.properties.inspect.queues import queue_extension, queue_list, queue_units
from tornpage.properties.inspect.small import config_files, marker_files

__all__ = ["VIEWS", "inspect_view"]

VIEWS: Final = ("log", "queues", "queue", "ext", "index", "checkpoint", "config", "groups")
_NAMED = ("queue", "ext", "index", "config", "groups")
_RENAMED: Final = {"progress": "groups"}
"""Former names of views."""
_RECORDS = frozenset({"offset", "key", "topic", "queue_id", "tag", "times"})
_IN_VIEW: Final = {
    "log": _RECORDS | {"message_id", "scan"},
    "queues": frozenset({"topic", "queue_id"}),
    "queue": frozenset({"offset", "queue_offset", "key", "tag", "times"}),
    "ext": frozenset[str](),
    "index": frozenset({"key", "topic"}),
    "checkpoint": frozenset[str](),
    "config": frozenset[str](),
    "groups": frozenset({"topic", "queue_id"}),
}
"""The query fields that each view uses, besides the name of its queue or file. Other fields are refused."""
_WORDS: Final = {
    "offset": "an offset",
    "message_id": "a message id",
    "queue_id": "a queue",
    "times": "store times",
    "queue_offset": "a queue offset",
    "scan": "a scan past the index",
}


def inspect_view(
    path: str | os.PathLike[str],
    name: str,
    what: str | None,
    query: Query,
    *,
    progress: Progress = without_progress,
) -> Document:
    """Return the document of one view.

    `what` is the queue (TOPIC/ID), the index file, the config file or the consumer group.

    `rowsLeftOut` of the document is how many rows `limit` left out, None where that is not known. `progress` is called
    with the part of the log read so far. Raises InspectError if the directory cannot be inspected or the query is not
    clear.
    """
    if name in _RENAMED:
        raise InspectError(f"the view {name!r} is now {_RENAMED[name]!r}; give that name")
    if what is not None and name not in _NAMED:
        raise InspectError(f"the view {name!r} takes no name, but {what!r} was given; leave it out")
    _refuse_unused_fields(name, what, query)
    queue = _queue(name, what, query) if name in ("queue", "ext") else None
    document = _document(open_view(path, file_bytes=query.file_bytes), name, what, query, queue, progress)
    document.setdefault("rowsLeftOut", more_or_none(document["rows"], query.limit))
    return document


def _document(
    view: StoreView, name: str, what: str | None, query: Query, queue: tuple[str, int] | None, progress: Progress
) -> Document:
    if queue is not None:
        return (queue_units if name == "queue" else queue_extension)(view, *queue, query)
    if name == "queues":
        return queue_list(view, query)
    if name == "index":
        if what is not None:
            return index_entries(view, what, query)
        return index_files(view, query) if query.key is None else index_chain(view, query)
    if name == "checkpoint":
        return marker_files(view, query)
    if name == "groups":
        return group_rows(view, what, query)
    if name == "config":
        return config_files(view, what, query)
    if query.message_id is not None:
        return by_id(view, query)
    if query.key is not None:
        return by_key(view, query, progress)
    return in_log(view, query, progress) if query.times is None else by_time(view, query, progress)


def _refuse_unused_fields(name: str, what: str | None, query: Query) -> None:
    used = _IN_VIEW[name]
    if name == "index" and what is not None:
        used = _RECORDS
    if name in ("queue", "ext") and what is None:
        used |= {"topic", "queue_id"}
    if unused := sorted(query.set_fields() - used):
        asked = " and ".join(_WORDS.get(each, f"a {each.replace('_', ' ')}") for each in unused)
        named = f"{name} {what}" if what is not None else name
        raise InspectError(f"the view {named!r} does not support {asked}; leave out the view, or that")


def _queue(name: str, what: str | None, query: Query) -> tuple[str, int]:
    if what is not None:
        return parse_queue(what)
    if query.topic is None or query.queue_id is None:
        raise InspectError(f"the view {name!r} needs a queue; give TOPIC/ID, as in TopicTest/0")
    return query.topic, query.queue_id
