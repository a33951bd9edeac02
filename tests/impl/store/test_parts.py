"""Test that parts of a store are replaced by type, and that a replacement has to fit."""

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from tornpage.impl.index.index_entries import PLAIN_ENTRIES
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.put_lock import make_put_lock
from tornpage.impl.log.scan import walk_log
from tornpage.impl.parts import Parts
from tornpage.impl.recovery.opening import AbortMarker


class OtherFile(MappedFile):
    """A mapped file of a user."""


class ThirdFile(MappedFile):
    """Another one."""


def no_walk(*_: object, **__: object) -> tuple[int, str | None]:
    return 0, None


def test_a_part_is_itself_unless_it_is_replaced() -> None:
    parts = Parts({MappedFile: OtherFile, walk_log: no_walk})
    assert parts.of(MappedFile) is OtherFile
    assert parts.of(walk_log) is no_walk
    assert parts.of(AbortMarker) is AbortMarker
    assert Parts().of(MappedFile) is MappedFile


def test_replacing_keeps_the_others_and_the_later_one_wins() -> None:
    first = Parts({MappedFile: OtherFile, walk_log: no_walk})
    second = first.replacing({MappedFile: ThirdFile})
    assert (second.of(MappedFile), second.of(walk_log)) == (ThirdFile, no_walk)
    assert first.of(MappedFile) is OtherFile


@pytest.mark.parametrize(
    ("kind", "replacement"),
    [(MappedFile, AbortMarker), (MappedFile, "a path"), (make_put_lock, None), (PLAIN_ENTRIES, print)],
)
def test_a_replacement_that_does_not_fit_is_refused(kind: Any, replacement: Any) -> None:
    with pytest.raises(TypeError, match="cannot replace"):
        Parts({kind: replacement})
    with pytest.raises(TypeError, match="cannot replace"):
        Parts().replacing({kind: replacement})


def test_a_factory_may_replace_a_class() -> None:
    factory: Callable[..., MappedFile] = lambda *arguments, **options: OtherFile(*arguments, **options)  # noqa: E731
    assert Parts({MappedFile: factory}).replaced == {MappedFile: factory}


def test_parts_are_values() -> None:
    replaced: dict[Any, Any] = {MappedFile: OtherFile}
    parts = Parts(replaced)
    assert parts == Parts({MappedFile: OtherFile}) != Parts()
    assert {parts, Parts({MappedFile: OtherFile})} == {parts}
    assert pickle.loads(pickle.dumps(parts)) == parts
    replaced[MappedFile] = ThirdFile
    assert parts.of(MappedFile) is OtherFile
    with pytest.raises(FrozenInstanceError):
        parts.replaced = {}  # type: ignore[misc]
    with pytest.raises(TypeError):
        parts.replaced[MappedFile] = ThirdFile  # type: ignore[index]
