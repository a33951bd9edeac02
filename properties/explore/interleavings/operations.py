"""What the tasks of a scenario do, as values; messages and flushes are those of cases (properties/program/case.py)."""

from dataclasses import dataclass
from typing import Any, Literal

from properties.program.case import Close, DeleteTopics, Flush, Put, PutBatch, Step

__all__ = [
    "OPERATIONS",
    "AskMaximum",
    "AskMinimum",
    "Commit",
    "GetRecord",
    "Operation",
    "Pull",
    "Query",
    "QueryProgress",
]


@dataclass(frozen=True, slots=True)
class GetRecord:
    """Get record `record` of those that were answered by then (counted modulo); -1 is what lies at the end of the log.

    `behind` of them says how many bytes behind its begin to look.
    """

    record: int = 0
    behind: int = 0
    op: Literal["get_record"] = "get_record"


@dataclass(frozen=True, slots=True)
class Pull:
    """Read a queue from `offset` on; -1 is where the last pull of this task said to go on."""

    topic: str = "T"
    queue_id: int = 0
    offset: int = -1
    max_msg_nums: int = 32
    op: Literal["pull"] = "pull"


@dataclass(frozen=True, slots=True)
class AskMaximum:
    """Ask for the maximum of a queue."""

    topic: str = "T"
    queue_id: int = 0
    op: Literal["ask_maximum"] = "ask_maximum"


@dataclass(frozen=True, slots=True)
class AskMinimum:
    """Ask for the minimum of a queue."""

    topic: str = "T"
    queue_id: int = 0
    op: Literal["ask_minimum"] = "ask_minimum"


@dataclass(frozen=True, slots=True)
class Query:
    """Ask for the newest messages of a topic with a key."""

    topic: str = "T"
    key: str = "k"
    max_num: int = 32
    op: Literal["query"] = "query"


@dataclass(frozen=True, slots=True)
class Commit:
    """Consumer group "g" commits an offset of a queue; -1 is where the last pull of this task said to go on."""

    topic: str = "T"
    queue_id: int = 0
    offset: int = -1
    op: Literal["commit"] = "commit"


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """Consumer group "g" asks where to go on in a queue."""

    topic: str = "T"
    queue_id: int = 0
    op: Literal["query_progress"] = "query_progress"


Operation = (
    Put
    | PutBatch
    | GetRecord
    | Pull
    | AskMaximum
    | AskMinimum
    | Query
    | Commit
    | QueryProgress
    | Flush
    | Close
    | Step
    | DeleteTopics
)

OPERATIONS: dict[str, Any] = {
    "put": Put,
    "put_batch": PutBatch,
    "get_record": GetRecord,
    "pull": Pull,
    "ask_maximum": AskMaximum,
    "ask_minimum": AskMinimum,
    "query": Query,
    "commit": Commit,
    "query_progress": QueryProgress,
    "flush": Flush,
    "close": Close,
    "step": Step,
    "delete_topics": DeleteTopics,
}
