"""Read one part of one log file: Arrow batches of its records, and problems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from tornpage.pipeline.readers.conditions import Conditions
from tornpage.pipeline.readers.parts import LogPart
from tornpage.pipeline.readers.problems import PROBLEM_CODES, Problem, from_error
from tornpage.pipeline.readers.seams import LOOK_BACK_BYTES, seam
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.record import Bad
from tornpage.properties.decode.store import RECORD_BYTES_MAX
from tornpage.properties.decode.walk import Unreadable

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from tornpage.properties.decode.arrays import LogBatch

__all__ = ["Read", "read_log"]

Read: TypeAlias = "Iterator[pa.RecordBatch | Problem]"


def read_log(
    part: LogPart,
    columns: tuple[str, ...],
    conditions: Conditions | None = None,
    *,
    drops_joined: bool = False,
    in_sums: bool = False,
    look_back_bytes: int = LOOK_BACK_BYTES,
) -> Read:
    """Yield the batches and problems of a part; without columns, problems only.

    Rows that do not fit the conditions are left out. With `in_sums` the batch has the columns of the table of sums.
    `drops_joined` is as in `parse_properties`. All records are checked, since each tells where the next begins. No
    content of the file raises an error.
    """
    from tornpage.pipeline.readers.log_columns import Columns
    from tornpage.pipeline.readers.topic_sums import TopicSums
    from tornpage.properties.decode.arrays import walk_arrays
    from tornpage.properties.decode.arrays.walker import PIECE_BYTES

    sums = TopicSums(part.store, part.label, columns) if in_sums else None
    wanted = Columns(part.store, part.label, () if in_sums else columns, conditions, drops_joined=drops_joined)
    try:
        with FileSource(part.path, size_bytes_max=part.file_bytes, piece_bytes=PIECE_BYTES) as source:
            start: int | None = part.start
            if part.is_seam:
                start = _seam(source, part, part.start, look_back_bytes)
            if start is None:
                return
            if part.is_exact and part.stop is not None:
                source.end = min(source.end, part.stop)
            moving: Problem | None = None
            end = part.base_offset + start
            walk = walk_arrays(
                source,
                position=start,
                stop=part.stop,
                texts=wanted.texts,
                with_properties=wanted.with_properties,
                drops_joined=drops_joined,
                base_offset=part.base_offset,
                file_bytes=part.file_bytes,
            )
            for batch in walk:
                end = batch.end
                if sums is not None:
                    sums.add(batch)
                elif columns and len(batch) and (rows := wanted.of(batch)).num_rows:
                    yield rows
                for problem in _problems(part, batch):
                    if moving is not None:
                        yield moving
                    moving = problem
            if sums is not None:
                yield from sums.batches()
            changed = source.has_changed() and not part.is_exact
            if moving is not None:
                is_tail = (moving.position or 0) + (moving.size or 0) >= source.end
                yield _as_tail(moving) if is_tail and (part.is_live or changed) else moving
            if changed:
                yield Problem(part.store, part.label, "READ_CHANGED", None, None, PROBLEM_CODES["READ_CHANGED"])
            if part.stop is not None and not part.is_exact:
                following = _seam(source, part, part.stop, look_back_bytes)
                if end - part.base_offset != (source.end if following is None else following):
                    wrong = _wrong_seam(part, end - part.base_offset, following)
                    yield _as_tail(wrong) if part.is_live or changed else wrong
    except OSError as error:
        if sums is not None:
            yield from sums.batches()
        yield from_error(part.store, part.label, error)


def _seam(source: FileSource, part: LogPart, start: int, look_back_bytes: int) -> int | None:
    return seam(
        source,
        start,
        base_offset=part.base_offset,
        file_bytes=part.file_bytes,
        record_bytes_max=RECORD_BYTES_MAX,
        look_back_bytes=look_back_bytes,
    )


def _problems(part: LogPart, batch: LogBatch) -> Iterator[Problem]:
    """Yield the stretches without records; a `Bad` describes the `Unreadable` after it."""
    field = ""
    for other in batch.others:
        if isinstance(other.item, Bad):
            field = other.item.field
        elif isinstance(other.item, Unreadable):
            reason = f"no valid record begins here: {other.item.reason} in the field {field}"
            position = other.item.offset - part.base_offset
            yield Problem(part.store, part.label, "CL_BAD_RECORD", position, other.item.size_bytes, reason)


def _as_tail(problem: Problem) -> Problem:
    return problem._replace(code="CL_TAIL_MOVING", message=f"{PROBLEM_CODES['CL_TAIL_MOVING']}; {problem.message}")


def _wrong_seam(part: LogPart, end: int, following: int | None) -> Problem:
    """Return the problem that the next part does not begin where this one ends."""
    if following is None:
        message = f"records from {end} on are missing from the rows"
        return Problem(part.store, part.label, "CL_SEAM", end, None, f"{PROBLEM_CODES['CL_SEAM']}; {message}")
    message = (
        f"rows from {following} on are not the records of this file, or not all of them; the walk continues at {end}"
    )
    return Problem(part.store, part.label, "CL_SEAM", following, None, f"{PROBLEM_CODES['CL_SEAM']}; {message}")
