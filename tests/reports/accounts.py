"""Explanations of counterexamples for tests: as commands write them, and hostile ones."""

from typing import Any

from tests.reports.documents import HOSTILE, with_texts

_LOG = "/store/commitlog/00000000000000000000"


def account() -> dict[str, Any]:
    """Return the explanation of a put that was promised and lost."""
    marks = [
        (0, "name", _LOG, "made"),
        (1, "size", _LOG, "8192 bytes"),
        (2, "directory sync", "/store/commitlog", "directory synced"),
        (3, "write", _LOG, "page 0"),
        (4, "sync", _LOG, "file synced"),
        (5, "write", _LOG, "page 1"),
        (6, "failed sync", _LOG, "sync failed"),
    ]
    return {
        "contract": 2,
        "sentence": "records that had to survive are missing after recovery",
        "expected": "2 records, log end 336",
        "found": "(1, 212)",
        "bug": "lying-flush",
        "disk": "posix-strict",
        "settings": {"file_bytes": 8192, "sync_flush": True},
        "token": "tp1-00000000-abc",
        "version": "0.1.0",
        "losses": 1,
        "lost_pages": 1,
        "lanes": {
            "operations": [
                {"text": "put(body_bytes=100)", "first": 2, "last": 5, "answer": "1 records, log ends at 212"},
                {"text": "put()", "first": 5, "last": 7, "answer": "2 records, log ends at 324"},
                {"text": "crash(others='kept')", "first": -1, "last": -1, "answer": ""},
            ],
            "entries": 7,
            "opened": 2,
            "crash": 7,
            "crash_operation": 2,
            "is_kill": False,
            "back": 0,
            "marks": [{"at": at, "kind": kind, "file": file, "what": what} for at, kind, file, what in marks],
        },
        "pages": [
            {"file": _LOG, "number": 0, "versions": 0, "fate": "durable"},
            {"file": _LOG, "number": 1, "versions": 2, "fate": "lost"},
        ],
        "facts": [{"fact": f"size {_LOG}", "fate": "kept"}],
        "certificate": [f"page 1 of {_LOG}: initial content, never synced before the crash"],
        "hexes": [
            {
                "file": _LOG,
                "page": 1,
                "fate": "lost",
                "lines": [
                    {"position": 4096, "hexadecimal": "00 " * 16, "text": "." * 16, "repeats": 255, "frame": ""}
                ],
                "versions": [
                    {"number": 0, "entry": -1, "survived": "whole", "changed": 0, "lines": []},
                    {
                        "number": 1, "entry": 5, "survived": "", "changed": 16,
                        "lines": [
                            {
                                "position": 4096, "hexadecimal": "74 " * 16, "text": "t" * 16, "repeats": 0,
                                "frame": "4096: record of T/0 at 1",
                            }
                        ],
                    },
                ],
            }
        ],
        "histories": [
            {"file": _LOG, "number": 0, "writes": [3], "syncs": [4]},
            {"file": _LOG, "number": 1, "writes": [5], "syncs": [4]},
        ],
        "frames": [
            _frame(0, 212, "record of T/0 at 0", "holds", "kept"),
            _frame(4096, 4096, "bytes without a record", "bad length", "cut and erased"),
        ],
        "records": [
            _record(0, 212, is_there=True),
            _record(212, 112, is_there=False),
        ],
        "decisions": [{"what": "opened", "said": "read-write"}],
        "legal": "2 to 2 records",
        "shrinking": {
            "one_minimal": True,
            "ended": "",
            "tries": 50,
            "operations_before": 40,
            "history": [{"what": "fewer operations", "tries": 40, "operations": 3, "losses": 1}],
        },
    }  # fmt: skip


def _frame(offset: int, size_bytes: int, what: str, verdict: str, recovery: str) -> dict[str, Any]:
    said = {"what": what, "verdict": verdict, "recovery": recovery}
    return {"file": _LOG, "offset": offset, "size_bytes": size_bytes, **said}


def _record(offset: int, size_bytes: int, *, is_there: bool) -> dict[str, Any]:
    there = {"promised": True, "on_disk": is_there, "recovered": is_there}
    return {"offset": offset, "size_bytes": size_bytes, "message": "T/0", **there}


def hostile_account() -> dict[str, Any]:
    """Return the explanation with hostile text in every place for a case, store or file name."""
    made: dict[str, Any] = with_texts(account(), lambda _: HOSTILE, keep=frozenset({"fate"}))
    return made
