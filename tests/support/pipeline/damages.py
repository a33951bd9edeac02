"""Damage stores at places drawn from a seed: bytes, fields, pages and whole files."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import iter_items, look

__all__ = ["DAMAGES", "damaged"]

Draw = random.Random


def damaged(root: Path, seed: int) -> list[str]:
    """Damage a store in one to three ways; return their names."""
    draw = random.Random(seed)
    names = draw.choices(sorted(DAMAGES), k=draw.choice((1, 1, 2, 3)))
    for name in names:
        DAMAGES[name](root, draw)
    return names


def _records(root: Path) -> list[tuple[Path, int, Record]]:
    view = look(root)
    bases = {file.label: file for file in view.files}
    return [
        (bases[each.file].path, each.item.offset - bases[each.file].base_offset, each.item)
        for each in iter_items(view)
        if isinstance(each.item, Record)
    ]


def _put(path: Path, position: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


def _flip(path: Path, position: int, draw: Draw) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1) or b"\0"
        file.seek(position)
        file.write(bytes((byte[0] ^ (1 << draw.randrange(8)),)))


def _field(first: int, last: int) -> Callable[[Path, Draw], None]:
    def damage(root: Path, draw: Draw) -> None:
        if records := _records(root):
            path, position, _ = draw.choice(records)
            _flip(path, position + draw.randint(first, last), draw)

    return damage


def _any_byte(root: Path, draw: Draw) -> None:
    if records := _records(root):
        path, position, record = draw.choice(records)
        _flip(path, position + draw.randrange(record.size_bytes), draw)


def _zero_record(root: Path, draw: Draw) -> None:
    if records := _records(root):
        path, position, record = draw.choice(records)
        _put(path, position, bytes(record.size_bytes))


def _zero_page(root: Path, draw: Draw) -> None:
    if records := _records(root):
        path, position, _ = draw.choice(records)
        start = position - position % 4096
        _put(path, start, bytes(min(4096, path.stat().st_size - start)))


def _zero_to_the_end(root: Path, draw: Draw) -> None:
    if records := _records(root):
        path, position, _ = draw.choice(records)
        _put(path, position, bytes(path.stat().st_size - position))


def _log_files(root: Path) -> list[Path]:
    return sorted((root / "commitlog").iterdir())


def _drop_log_file(root: Path, draw: Draw) -> None:
    files = _log_files(root)
    if len(files) > 1:
        draw.choice(files).unlink()


def _cut_log_file(root: Path, draw: Draw) -> None:
    files = _log_files(root)
    if len(files) > 1:
        path = draw.choice(files[1:])
        with path.open("r+b") as file:
            file.truncate(draw.randrange(path.stat().st_size + 1))


def _swap_log_files(root: Path, draw: Draw) -> None:
    files = _log_files(root)
    if len(files) > 1:
        one, other = draw.sample(files, 2)
        aside = one.with_name("aside")
        one.rename(aside)
        other.rename(one)
        aside.rename(other)


def _derived(root: Path, part: str) -> list[Path]:
    return sorted(path for path in (root / part).rglob("*") if path.is_file())


def _flip_in(part: str) -> Callable[[Path, Draw], None]:
    def damage(root: Path, draw: Draw) -> None:
        if files := [path for path in _derived(root, part) if path.stat().st_size]:
            path = draw.choice(files)
            _flip(path, draw.randrange(min(path.stat().st_size, 2000)), draw)

    return damage


def _drop_from(part: str) -> Callable[[Path, Draw], None]:
    def damage(root: Path, draw: Draw) -> None:
        if files := _derived(root, part):
            draw.choice(files).unlink()

    return damage


def _drop(part: str) -> Callable[[Path, Draw], None]:
    return lambda root, draw: shutil.rmtree(root / part, ignore_errors=True)


def _zero_queue_file(root: Path, draw: Draw) -> None:
    if files := _derived(root, "consumequeue"):
        path = draw.choice(files)
        _put(path, 0, bytes(path.stat().st_size))


def _garble_checkpoint(root: Path, draw: Draw) -> None:
    if (root / "checkpoint").exists():
        _put(root / "checkpoint", draw.randrange(24), bytes((draw.randrange(256),)))


DAMAGES: dict[str, Callable[[Path, Draw], None]] = {
    "any byte of a record": _any_byte,
    "size": _field(0, 3),
    "queue id": _field(12, 15),
    "queue offset": _field(20, 27),
    "physical offset": _field(28, 35),
    "flags": _field(36, 39),
    "body": _field(88, 91),
    "a record of zeros": _zero_record,
    "a page of zeros": _zero_page,
    "zeros to the end of a log file": _zero_to_the_end,
    "a log file gone": _drop_log_file,
    "a log file cut": _cut_log_file,
    "two log files swapped": _swap_log_files,
    "a byte of a queue": _flip_in("consumequeue"),
    "a queue file gone": _drop_from("consumequeue"),
    "all queues gone": _drop("consumequeue"),
    "a queue file of zeros": _zero_queue_file,
    "a byte of the index": _flip_in("index"),
    "an index file gone": _drop_from("index"),
    "the checkpoint": _garble_checkpoint,
}
