"""The amount of work of one round of a measurement.

Tests use small numbers, published figures the defaults.
"""

from dataclasses import dataclass, replace

__all__ = ["FULL", "QUICK", "TINY", "Sizes"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Work per round; `_bytes` are bytes, everything else counts.

    `log_file_bytes` holds all puts of a round, so that no round pays for a second file. `recover_file_bytes` is
    smaller, so that an open maps several files. A store of `open_bytes` is opened where next to nothing must be
    recovered. `audit_bytes` of log are audited, in files of `audit_file_bytes`. `campaign_states` ends a campaign after
    this many states instead of after its time. A figure of Spark first runs `spark_warm_rounds` that do not count.
    `shards` of about `shard_s` seconds are a campaign for Spark.
    """

    log_file_bytes: int = 256 << 20
    puts: int = 50_000
    gets: int = 20_000
    syncs: int = 200
    recover_bytes: int = 256 << 20
    recover_file_bytes: int = 64 << 20
    open_bytes: int = 4 << 30
    open_file_bytes: int = 1 << 30
    bodies: int = 16_384
    copy_bytes: int = 64 << 20
    looks: int = 500
    campaign_states: int | None = None
    histories: int = 4
    history_steps: int = 60
    kills: int = 50
    simulated_messages: int = 200_000
    audit_bytes: int = 1 << 30
    audit_file_bytes: int = 1 << 30
    spark_tasks: int = 200
    spark_warm_rounds: int = 10
    shards: int = 4
    shard_s: float = 10.0


FULL = Sizes()
QUICK = replace(FULL, audit_bytes=128 << 20, audit_file_bytes=64 << 20, shard_s=3.0)
"""A smaller store to audit, made and read in seconds, and shorter shards.

Spark's own costs weigh more in them.
"""

TINY = Sizes(
    log_file_bytes=256 << 10,
    puts=100,
    gets=50,
    syncs=2,
    recover_bytes=64 << 10,
    recover_file_bytes=32 << 10,
    open_bytes=128 << 10,
    open_file_bytes=64 << 10,
    bodies=16,
    copy_bytes=64 << 10,
    looks=5,
    campaign_states=20,
    histories=1,
    history_steps=10,
    kills=2,
    simulated_messages=2_000,
    audit_bytes=256 << 10,
    audit_file_bytes=128 << 10,
    spark_tasks=4,
    spark_warm_rounds=0,
    shards=1,
    shard_s=0.0,
)
"""For tests: every code path in milliseconds, without meaningful numbers."""
