"""Judge settings, lines and frames of replication at their limits, once in a process.

These parts have no state, so a run judges them without a program. This module judges

* defaults and checks of settings (contract 8);
* the longest line of a client;
* every frame with its shortest, longest and wrong bodies;
* the common point of small logs.

`parts_hold` also calls the other judges that run once in a process. Each of them has a module of its own.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

from tornpage.impl.errors import BadConfig
from tornpage.impl.replication import frames
from tornpage.impl.replication.framing import BadFrame, Framing
from tornpage.impl.replication.generations import Generation, common_point
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.serving.lines import BadLine, LineReader, line_of
from tornpage.model.replication.settings import CASES, DEFAULTS
from tornpage.properties.cluster.classic_pairs import classic_pairs_hold
from tornpage.properties.cluster.client_lines import clients_hold
from tornpage.properties.cluster.connections_alone import connections_hold
from tornpage.properties.cluster.cuts_alone import cuts_hold
from tornpage.properties.cluster.node_client import node_client_holds
from tornpage.properties.cluster.sockets import sockets_hold, threads_hold
from tornpage.properties.cluster.waiting_requests import waiting_requests_hold
from tornpage.properties.cluster.whole_nodes import whole_nodes_hold
from tornpage.properties.contract import GuaranteeBroken

__all__ = ["framing_holds", "parts_hold", "refuses", "settings_hold"]

_LINE_BYTES_MAX = 8 << 20
_GREETING_BYTES_MAX = 16 + 56 + 256 * 32
_TOKENS = (b"a" * 16, b"b" * 16)


@cache
def parts_hold() -> None:
    """Judge all parts. Raises GuaranteeBroken."""
    settings_hold(ReplicationSettings, DEFAULTS, CASES)
    _lines_hold()
    framing_holds(frames.FrameReader(0), 3, _GREETING_BYTES_MAX)
    framing_holds(frames.FrameReader(1 << 20), 3, (1 << 20) + 8)
    framing_holds(frames.FrameReader(1 << 24), 3, (1 << 24) + 8)
    _bodies_hold()
    _greetings_hold()
    _common_points_hold()
    waiting_requests_hold()
    connections_hold()
    cuts_hold()
    clients_hold()
    node_client_holds()
    sockets_hold()
    threads_hold()
    whole_nodes_hold()
    classic_pairs_hold()


def settings_hold(
    make: Callable[..., Any],
    defaults: Mapping[str, Any],
    cases: Sequence[tuple[dict[str, Any], bool]],
    **given: Any,
) -> None:
    """Contract 8: settings have their defaults, and refuse impossible values with BadConfig.

    The refusal names a setting and its value, or one of its values.
    """
    made = make(**given)
    for name, value in defaults.items():
        if getattr(made, name) != value or isinstance(value, bool) is not isinstance(getattr(made, name), bool):
            raise GuaranteeBroken(8, f"the setting {name} has another default", str(value), str(getattr(made, name)))
    for changes, is_valid in cases:
        try:
            make(**{**given, **changes})
        except BadConfig as error:
            if is_valid:
                raise GuaranteeBroken(8, f"the settings {changes} are refused") from None
            value = {**defaults, **given, **changes}.get(str(error.name))
            values = (value, *value) if isinstance(value, tuple) else (value,)
            if not any(str(error).startswith(f"configuration {error.name}={each!r} is ") for each in values):
                raise GuaranteeBroken(8, "a refusal names another setting", str(changes), str(error)) from None
        else:
            if not is_valid:
                raise GuaranteeBroken(8, f"the settings {changes} are accepted")


def refuses(read: Callable[[Any], object], wrong: object, kind: type[Exception], what: str) -> None:
    """Contract 8: wrong input is refused. `read` takes it."""
    try:
        read(wrong)
    except kind:
        return
    raise GuaranteeBroken(8, f"{what} is accepted", kind.__name__)


# ---- lines -----------------------------------------------------------------------------------------------------------


def _lines_hold() -> None:
    """Contract 8: a line has at most 8 MiB, in one piece or in several, and is one object."""
    documents: list[dict[str, Any]] = [{"a": 1}, {"b": "x" * 30}, {}]
    data = b"".join(map(line_of, documents))
    for step in (1, 7, len(data)):
        found = _objects_of([data[at : at + step] for at in range(0, len(data), step)])
        if found != documents:
            raise GuaranteeBroken(8, f"lines in pieces of {step} bytes are read as others", str(documents), str(found))
    for wrong in (b"[1]\n", b"x\n", b'{"a"}\n', b"\n"):
        refuses(_objects_of, (wrong,), BadLine, f"the line {wrong!r}")
    for extra, end in product((0, 1), (b"\n", b"")):
        line = b'{"a":"' + b"x" * (_LINE_BYTES_MAX - 8 + extra) + b'"}'
        pieces = line[:100], line[100:] + end
        if extra:
            refuses(_objects_of, pieces, BadLine, f"a line of {len(line)} bytes")
        elif len(_objects_of(pieces)) != len(end):
            raise GuaranteeBroken(8, f"a line of {len(line)} bytes is not read")


def _objects_of(pieces: Sequence[bytes]) -> list[dict[str, Any]]:
    reader = LineReader()
    return [each for piece in pieces for each in reader.feed(piece)]


# ---- frames ----------------------------------------------------------------------------------------------------------


def _frame(kind: int, body: bytes, size_bytes: int | None = None) -> bytes:
    checked = struct.pack(">B3xI", kind, len(body) if size_bytes is None else size_bytes)
    return checked + struct.pack(">II", zlib.crc32(checked), zlib.crc32(body)) + body


def framing_holds(reader: Framing, kind: int, body_bytes_max: int) -> None:
    """Contract 15: frames are read in pieces of any size, up to the longest one."""
    bodies = [b"", b"x", b"y" * 40, b"z" * body_bytes_max]
    data = b"".join(_frame(kind, body) for body in bodies)
    pieces = [data[:5], data[5:16], data[16:17], data[17:60], data[60:100], data[100:-1], data[-1:]]
    found = [frame.body for piece in pieces for frame in reader.feed(piece)]
    if found != bodies:
        raise GuaranteeBroken(
            15, f"{len(bodies)} frames in pieces are read as others", found=str(list(map(len, found)))
        )
    head = _frame(kind, b"", body_bytes_max + 1)
    refuses(lambda wrong: list(reader.feed(wrong)), head, BadFrame, f"a frame of {body_bytes_max + 1} bytes")


def _numbers(*values: int) -> bytes:
    return struct.pack(f">{len(values)}q", *values)


def _bodies_hold() -> None:
    """Contract 15: acknowledgements, data and heartbeats have the bytes of the table.

    Wrong ones are refused.
    """
    for received, durable in product((-1, 0, 1, 5), repeat=2):
        body = _numbers(received, durable)
        if 0 <= durable <= received:
            if frames.read_ack(body) != (received, durable) or frames.ack_frame(received, durable) != _frame(5, body):
                raise GuaranteeBroken(15, "an acknowledgement has other bytes", str((received, durable)))
        else:
            refuses(frames.read_ack, body, BadFrame, f"the acknowledgement {received, durable}")
    for size_bytes in (0, 8, 15, 17, 24):
        refuses(frames.read_ack, bytes(size_bytes), BadFrame, f"one of {size_bytes} bytes")
    for size_bytes in (0, 7, 8):
        refuses(frames.read_data, bytes(size_bytes), BadFrame, f"data of {size_bytes} bytes")
    offset, data = frames.read_data(_numbers(7) + b"x")
    made = (frames.data_frame(7, b"x"), frames.ping_frame(7), frames.refusal_frame("é" * 600))
    wanted = (_frame(3, _numbers(7) + b"x"), _frame(4, _numbers(7)), _frame(6, ("é" * 600).encode()[:1024]))
    if (offset, bytes(data)) != (7, b"x") or made != wanted:
        raise GuaranteeBroken(15, "a frame has other bytes than the table of frames", str(wanted), str(made))


def _greeting(**changes: Any) -> bytes:
    values = {"version": 1, "flag": 1, "count": 2, "begin": 10, "end": 30, "flushed": 20, **changes}
    head = struct.pack(">HBxI", values["version"], values["flag"], values["count"]) + b"n" * 16
    rows = b"".join(_numbers(number + 1, 10 * number) + token for number, token in enumerate(_TOKENS))
    return head + _numbers(4096, values["begin"], values["end"], values["flushed"]) + rows


def _greetings_hold() -> None:
    """Contract 15: a greeting has the bytes of the table.

    One that contradicts itself is refused.
    """
    generations = tuple(Generation(number + 1, 10 * number, token) for number, token in enumerate(_TOKENS))
    greeting = frames.Greeting(b"n" * 16, 4096, True, 10, 30, 20, generations)
    body = _greeting()
    welcome = struct.pack(">B7xq", 2, 9) + body
    if frames.greeting_of(body) != greeting or frames.hello_frame(greeting) != _frame(1, body):
        raise GuaranteeBroken(15, "a greeting has other bytes than the table of frames")
    if frames.read_welcome(welcome) != (frames.Action.CUT, 9, greeting):
        raise GuaranteeBroken(15, "a welcome is read as another one")
    if frames.welcome_frame(frames.Action.CUT, 9, greeting) != _frame(2, welcome):
        raise GuaranteeBroken(15, "a welcome has other bytes than the table of frames")
    equal = _greeting(begin=30, end=30, flushed=30)
    if frames.greeting_of(equal).end != 30 or frames.greeting_of(_greeting(begin=0, flushed=0)).begin:
        raise GuaranteeBroken(15, "a greeting at its limits is read as another one")
    wrong: list[dict[str, int]] = [
        {"version": 0}, {"version": 2}, {"flag": 2}, {"count": 1}, {"count": 3}, {"begin": -1}, {"begin": 31},
        {"flushed": -1}, {"flushed": 31}, {"end": 9},
    ]  # fmt: skip
    for changes in wrong:
        body = _greeting(**changes)
        refuses(frames.greeting_of, body, BadFrame, f"the greeting {changes}")
    for size_bytes in (0, 10, 55, len(_greeting()) - 1, len(_greeting()) + 1):
        body = _greeting().ljust(size_bytes, b"\0")[:size_bytes]
        refuses(frames.greeting_of, body, BadFrame, f"a greeting of {size_bytes} bytes")
    for action, position in ((0, 9), (4, 9), (1, -1)):
        body = struct.pack(">B7xq", action, position) + _greeting()
        refuses(frames.read_welcome, body, BadFrame, f"action {action} at {position}")
    for size_bytes in (0, 15):
        refuses(frames.read_welcome, bytes(size_bytes), BadFrame, f"one of {size_bytes} bytes")


# ---- generations -----------------------------------------------------------------------------------------------------


def _histories() -> Iterator[tuple[tuple[Generation, ...], int]]:
    """Yield small histories of a log with their ends."""
    for count in range(3):
        for starts in product((0, 2, 4), repeat=count):
            if list(starts) != sorted(starts):
                continue
            for tokens in product(_TOKENS, repeat=count):
                if len(set(tokens)) < count:
                    continue
                entries = tuple(
                    Generation(number + 1, start, token)
                    for number, (start, token) in enumerate(zip(starts, tokens, strict=True))
                )
                for end in (0, 3, 5):
                    yield entries, end


def _common_points_hold() -> None:
    """Contract 15: two logs are equal up to the end of their newest common generation.

    It is the smaller end of the two.
    """
    histories = tuple(_histories())
    for (ours, our_end), (theirs, their_end) in product(histories, repeat=2):
        common = [each for each in ours if each in theirs and each.start <= min(our_end, their_end)]
        wanted = None
        if common:
            later = [
                entries[entries.index(common[-1]) + 1].start
                for entries in (ours, theirs)
                if entries.index(common[-1]) + 1 < len(entries)
            ]
            wanted = min((our_end, their_end, *later))
        found = common_point(ours, our_end, theirs, their_end)
        if found != wanted:
            raise GuaranteeBroken(
                15, f"the common point of {ours}, {our_end} and {theirs}, {their_end}", str(wanted), str(found)
            )
