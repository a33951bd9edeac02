"""Test the document of `properties.inspect` and its refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.properties.handmade import DATA, blank, properties_of, record
from tornpage.properties.inspect import InspectError, inspect_store

STORE = DATA / "golden" / "03-rollover-blanks-retention" / "store"


def test_document_is_json_and_complete() -> None:
    document = inspect_store(STORE, limit=5)
    assert json.loads(json.dumps(document)) == document
    assert set(document) == {"verdict", "figures", "rows", "rowsLeftOut", "findings"}
    assert len(document["rows"]) == 5
    figures = document["figures"]
    assert (figures["files"], figures["records"], figures["blanks"]) == (9, 176, 8)
    assert (figures["bytes"], figures["min_offset"], figures["max_offset"]) == (9 * 16384, 32768, 168060)


def test_record_row(tmp_path: Path) -> None:
    base = 1 << 60
    stored = record(
        base,
        b"12345",
        properties=properties_of(("KEYS", "a b"), ("TAGS", "t"), ("UNIQ_KEY", "u")),
        trailer=True,
        born_host=("2001:db8::1", 7),
        queue_offset=2**53 + 1,
    )
    (tmp_path / "commitlog").mkdir()
    path = tmp_path / "commitlog" / f"{base:020}"
    path.write_bytes(stored + blank(1024 - len(stored)))
    rows = inspect_store(tmp_path)["rows"]
    assert rows[0] | {"recordSha256": ""} == {
        "kind": "record",
        "file": f"commitlog/{base:020}",
        "phy": base,
        "phyText": str(base),
        "size": len(stored),
        "topic": "TopicTest",
        "queueId": 0,
        "queueOffset": 2**53 + 1,
        "queueOffsetText": str(2**53 + 1),
        "storedPhy": base,
        "storedPhyText": str(base),
        "sysFlag": 0x10,
        "storeTimestamp": 1_700_000_000_001,
        "recordSha256": "",
        "keys": "a b",
        "tags": "t",
        "uniqKey": "u",
        "msgId": "7F00000100002A9F" + f"{base:016X}",
        "bodyLength": 5,
        "bornTimestamp": 1_700_000_000_000,
        "bornHost": ["2001:db8::1", 7],
        "storeHost": ["127.0.0.1", 10911],
        "hasChecksum": True,
    }
    assert rows[1] == {
        "kind": "blank",
        "file": f"commitlog/{base:020}",
        "phy": base + len(stored),
        "phyText": str(base + len(stored)),
        "size": 1024 - len(stored),
    }


def test_rows_from_an_offset_and_limits() -> None:
    every = inspect_store(STORE, limit=None)["rows"]
    assert len(every) == 184
    middle = every[100]
    for offset in (middle["phy"], middle["phy"] + middle["size"] - 1):
        assert inspect_store(STORE, limit=3, from_offset=offset)["rows"] == every[100:103]
        part = inspect_store(STORE, limit=3, from_offset=offset, whole=False)
        assert part["rows"] == every[100:103]
        assert part["verdict"] is None
    assert inspect_store(STORE, limit=0)["rows"] == []
    assert inspect_store(STORE, from_offset=1 << 50)["rows"] == []
    assert inspect_store(STORE, limit=None, whole=False)["verdict"] == "holds"


def test_bad_place_is_shown(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    stored = record(0) + b"junk" * 30
    (tmp_path / "commitlog" / f"{0:020}").write_bytes((stored + record(len(stored))).ljust(1024, b"\0"))
    document = inspect_store(tmp_path)
    assert [row["kind"] for row in document["rows"]] == ["record", "bad", "unreadable", "record"]
    assert document["rows"][1]["reason"] == "bad_magic"
    assert document["verdict"] == "broken"
    assert document["figures"]["damages"] == 1
    assert [finding["code"] for finding in document["findings"] if finding["severity"] == "damage"] == ["CL_BAD_RECORD"]


def test_refusals_are_one_line_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "readme").touch()
    for path, words in (
        (tmp_path / "none", "no such directory"),
        (tmp_path / "file", "not a directory"),
        (tmp_path / "empty", "empty directory"),
        (tmp_path / "other", "not a store directory"),
        (STORE / "commitlog", str(STORE)),
        ("nul\0byte\n", "no such directory"),
    ):
        with pytest.raises(InspectError, match="; ") as refusal:
            inspect_store(path)
        assert words in str(refusal.value)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("arguments", [{"limit": -1}, {"from_offset": -1}, {"file_bytes": 0}])
def test_bad_numbers_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(InspectError, match="; give"):
        inspect_store(STORE, **arguments)  # type: ignore[arg-type]


def test_directory_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "commitlog").mkdir()
    real = Path.iterdir

    def denied(directory: Path) -> Iterator[Path]:
        if directory.name == "commitlog":
            raise PermissionError(13, "Permission denied", str(directory))
        return real(directory)

    monkeypatch.setattr(Path, "iterdir", denied)  # its system calls differ between versions of Python
    with pytest.raises(InspectError, match=r"no permission to list .*commitlog"):
        inspect_store(tmp_path)
