"""State the defaults of the settings of a running member, and which values they may have.

Source: the table of settings in docs/replication/raft.md and the docstring of impl/raft/settings.py.
"""

from typing import Any

__all__ = ["CASES", "DEFAULTS"]

DEFAULTS: dict[str, Any] = {
    "content": "entries", "heartbeat_interval": 150, "election_timeout_min": 600, "election_timeout_max": 1_200,
    "answer_timeout": 2_500, "reconnect_interval": 200, "silence_max": 5_000, "connections_max": 32,
    "batch_bytes_max": 262_144, "body_bytes_max": 4_194_304, "pending_max": 10_000, "pending_bytes_max": 67_108_864,
    "recent_bytes_max": 4_194_304, "unsent_bytes_max": 8_388_608, "data_file_bytes": 1_073_741_824,
    "index_file_bytes": 167_772_160,
}  # fmt: skip

_FREE = (
    "answer_timeout", "reconnect_interval", "connections_max", "batch_bytes_max", "body_bytes_max", "pending_max",
    "pending_bytes_max", "recent_bytes_max", "unsent_bytes_max",
)  # fmt: skip
_TIMED = ("heartbeat_interval", "election_timeout_min", "election_timeout_max", "silence_max")
_SIZES = ("data_file_bytes", "index_file_bytes")
_PEERS: tuple[tuple[tuple[str, ...], bool], ...] = (
    ((), False),
    (("10.0.0.1:1",), True),
    (tuple(f"10.0.0.{number}:1" for number in range(7)), True),
    (tuple(f"10.0.0.{number}:1" for number in range(8)), False),
    (("10.0.0.1:1", "10.0.0.1:1"), False),
    (("10.0.0.1:1", "10.0.0.1:2"), True),
    (("host:1",), False),
    (("10.0.0.1",), False),
    (("10.0.0.1:0",), False),
    (("10.0.0.1:65535",), True),
    (("10.0.0.1:65536",), False),
)

CASES: tuple[tuple[dict[str, Any], bool], ...] = (
    *(({name: value}, 1 <= value < 1 << 31) for name in _FREE for value in (0, 1, (1 << 31) - 1, 1 << 31)),
    *(({name: value}, False) for name in (*_FREE, *_TIMED) for value in (-1, 0, 1 << 31, 700.5)),
    *(({"heartbeat_interval": value}, value <= 300) for value in (1, 300, 301)),
    *(({"election_timeout_min": value}, 300 <= value < 1_200) for value in (299, 300, 1_199, 1_200)),
    *(({"election_timeout_max": value}, 600 < value < 5_000) for value in (600, 601, 4_999, 5_000)),
    *(({"silence_max": value}, value > 1_200) for value in (1_200, 1_201)),
    *(
        ({name: value}, 4_096 <= value <= 1 << 40)
        for name in _SIZES
        for value in (4_095, 4_096, 1 << 40, 1 + (1 << 40))
    ),
    *(({"peers": peers}, is_valid) for peers, is_valid in _PEERS),
)
"""Changes of the defaults, and whether they are accepted."""
