"""Documents for pages: stores, histories, runs with many findings; and hostile text."""

from collections.abc import Callable
from typing import Any

HOSTILE = (
    "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\x1b]0;x\x07\u202e"
)
_LOG = f"commitlog/{0:020}"
_INDEX = "index/20261121083711775"
_QUEUE = f"consumequeue/Orders/0/{0:020}"


def store_document() -> dict[str, Any]:
    """Return the document of a damaged store, as `audit --html` makes it."""
    queue_finding = {"topic": "Orders", "queue_id": 0, "queue_offset": 10, "items": 3, "offset": 30801, "position": 200}
    return {
        "command": "audit STORE --html store.html",
        "store": "/var/rocketmq/store",
        "verdict": "broken",
        "version": "0.1.0",
        "figures": {"records": 206, "log_files": 2},
        "findings": [
            _finding("CL_BAD_RECORD", "damage", _LOG, offset=19801, position=19801),
            _finding("CQ_MISSING", "damage", _QUEUE, **queue_finding),
            _finding("CP_AHEAD_OF_LOG", "note", "checkpoint"),
        ],
        "files": [
            _file(_LOG, "log", 65536, record=(0, 19801, 16), unreadable=(19801, 5000, 0), zeros=(24801, 40735, 0)),
            _file(f"commitlog/{65536:020}", "log", 65536),
            _file(_QUEUE, "queue", 1280, unit=(0, 200, 10), empty=(200, 1080, 0)),
            _file(_INDEX, "index", 40440, header=(0, 40, 0), slots=(40, 400, 0), entries=(440, 12620, 630)),
        ],
        "queues": [
            {
                "topic": "Orders", "queue_id": 0, "min_offset": 0, "max_offset": 84, "files": 1, "size": 1280,
                "extensions": 0,
            }
        ],
        "indexes": [
            {
                "file": _INDEX, "size": 40440, "entries": 630, "entries_max": 2000, "slots": 100,
                "slots_used": 100, "chain_max": 25, "collisions": 338, "problems": 0, "begin_offset": 0,
                "end_offset": 243437,
            }
        ],
        "small_files": [{"file": "checkpoint", "said": "physicMsgTimestamp 0"}],
        "consumers": [{"who": "g", "queue": "Orders/0", "offset": None, "end": 84, "lag": 84, "state": "none"}],
    }  # fmt: skip


def _finding(code: str, severity: str, file: str, **more: Any) -> dict[str, Any]:
    return {
        "code": code,
        "severity": severity,
        "file": file,
        "message": f"what {code} says",
        "remedy": "restore",
        **more,
    }


def _file(name: str, kind: str, size: int, **runs: tuple[int, int, int]) -> dict[str, Any]:
    told = [{"what": what, "at": at, "size": some, "items": items} for what, (at, some, items) in runs.items()]
    return {"file": name, "kind": kind, "size": size, "base": 0, "runs": told}


def history(count: int = 24) -> list[dict[str, Any]]:
    """Return result rows of runs of three kinds.

    Two of the kinds broke, and the speed jumps once.
    """
    return [_run(number, number % 3) for number in range(count)]


def _run(number: int, kind: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run": f"run-{number:03}",
        "started": f"2026-11-{1 + number // 2:02}T0{number % 9}:00:00Z",
        "version": "0.1.0" if number < 12 else "0.2.0",
        "command": ("explore", "campaign", "bugs score")[kind],
        "verdict": "broken" if number in (7, 21) else "holds",
        "seed": number,
        "causes": ["contract-3: a cut byte is still on disk"] if number in (7, 21) else [],
        "median_kill_s": None,
    }
    if kind == 2:
        return row | {"bugs": 76, "killed": 70, "median_kill_s": 6.0 - number / 10}
    jump = 40 if number > 12 else 0
    return row | {"states": 2000, "states_per_s": 120.0 + number % 5 + jump, "distinct_recovered": 60 + number % 7}


def many_findings(count: int) -> list[dict[str, Any]]:
    """Return findings as campaigns have them.

    They have seven contracts, thirty causes, and tokens of usual length.
    """
    return [
        {
            "code": f"contract-{1 + number % 7}",
            "severity": "broken",
            "sentence": f"promise {chr(97 + number % 30 % 26)}{number % 30 // 26} is broken at offset {number * 64}",
            "expected": f"{number} records",
            "found": f"{number - 1} records",
            "program": [f"put(topic='T{number % 4}', body_bytes={100 + number})"] * 5
            + ["crash(back=3, survived={'page /store/commitlog/00000000000000000000 1': 0}, others='kept')"],
            "losses": 3,
            "lost_pages": 1,
            "history": f"7:{number}",
            "histories": 1 + number % 3,
            "settings": {"file_bytes": 8192},
            "token": f"tp1-{number:08x}-" + "eNqNkEFrwzAMhf9KEfSWEKftYfFthbF7m8vYRnBcxTNLY2PLhRDy3yeX7TDY" * 8,
        }
        for number in range(count)
    ]


def with_texts(value: Any, text_of: Callable[[str], str], *, keep: frozenset[str] = frozenset()) -> Any:
    """Return a document with `text_of` applied to each text.

    The values of the keys in `keep` are left alone.
    """
    if isinstance(value, dict):
        return {name: each if name in keep else with_texts(each, text_of, keep=keep) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [with_texts(each, text_of, keep=keep) for each in value]
    return text_of(value) if isinstance(value, str) else value
