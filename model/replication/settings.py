"""State the defaults of the settings of replication, and which values they may have.

Source: docs/replication/design.md and the docstring of impl/replication/settings.py. Names that begin with `ha_` are
those of RocketMQ.
"""

from typing import Any

__all__ = ["CASES", "DEFAULTS"]

DEFAULTS: dict[str, Any] = {
    "protocol": "tornpage", "ha_listen_address": "127.0.0.1:10912", "ha_master_address": "",
    "ha_transfer_batch_size": 131_072, "ha_send_heartbeat_interval": 5_000, "ha_housekeeping_interval": 20_000,
    "peers": (), "connections_max": 64, "reconnect_interval": 1_000, "poll_interval": 5, "in_sync_replicas": 1,
    "acknowledge": "received", "send_flushed_only": False, "discard_when_gone": False,
}  # fmt: skip

_COUNTS = ("ha_send_heartbeat_interval", "connections_max", "reconnect_interval", "poll_interval", "in_sync_replicas")

CASES: tuple[tuple[dict[str, Any], bool], ...] = (
    *(({name: value}, value >= 1) for name in _COUNTS for value in (-1, 0, 1)),
    *(({"ha_transfer_batch_size": value}, 1 <= value <= 1 << 20) for value in (0, 1, 1 << 20, (1 << 20) + 1)),
    *(({"ha_housekeeping_interval": value}, value > 5_000) for value in (4_999, 5_000, 5_001)),
    *(({"protocol": value}, value in ("tornpage", "4.9.3")) for value in ("tornpage", "4.9.3", "5.0")),
    *(({"acknowledge": value}, value in ("received", "durable")) for value in ("received", "durable", "all")),
    ({"protocol": "4.9.3", "acknowledge": "durable"}, False),
)
"""Changes of the defaults, and whether they are accepted."""
