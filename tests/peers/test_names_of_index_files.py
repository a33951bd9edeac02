"""Test that a case finds the index files of another recording."""

from tornpage.peers.own_histories import _index_names_of
from tornpage.properties.disk.images import InFlightWrite


def write(name: str) -> InFlightWrite:
    return InFlightWrite(name, name.split()[0], 2)


def test_index_files_keep_their_order() -> None:
    log = "page /commitlog/00000000000000000000 1"
    old = {"page /index/20260101000000001 0": 1, "size /index/20260101000000002": 0, log: 1}
    new = [write("page /index/20270101000000007 0"), write("size /index/20270101000000009")]
    assert _index_names_of(new, old) == {
        "page /index/20270101000000007 0": 1,
        "size /index/20270101000000009": 0,
        log: 1,
    }
    assert _index_names_of([], old) == old
