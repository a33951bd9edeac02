"""Read policies from a RocketMQ broker's properties file (`name=value` lines).

Names, defaults and rules are those of 4.9.3. An unknown name is refused, and the message lists similar names: a
misspelt setting would otherwise be simulated with its default. Known names that the simulator does not use are
reported, not refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tornpage.impl.config.broker_settings import KNOWN, parse_lines, problem_of
from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.scenario import Pool

__all__ = [
    "KNOWN",
    "BadBrokerConfig",
    "BrokerPolicies",
    "parse_properties",
    "policies_of",
    "require_known",
    "settings_of",
]

DEFAULTS: Mapping[str, str] = {
    "flushDiskType": "ASYNC_FLUSH",
    "flushIntervalCommitLog": "500",
    "flushCommitLogLeastPages": "4",
    "flushCommitLogThoroughInterval": "10000",
    "flushCommitLogTimed": "true",
    "syncFlushTimeout": "5000",
    "transientStorePoolEnable": "false",
    "transientStorePoolSize": "5",
    "commitIntervalCommitLog": "200",
    "commitCommitLogLeastPages": "4",
    "commitCommitLogThoroughInterval": "200",
    "fastFailIfNoBufferInStorePool": "false",
    "warmMapedFileEnable": "false",
    "flushLeastPagesWhenWarmMapedFile": "4096",
    "mappedFileSizeCommitLog": str(1 << 30),
}
"""The settings that the simulator uses, with the store's defaults."""
WITHOUT_EFFECT = KNOWN - frozenset(DEFAULTS)
_BOOLEANS = {"true": True, "false": False}


class BadBrokerConfig(ValueError):
    """The settings cannot be simulated; the message names the line and the reason."""


@dataclass(frozen=True, slots=True)
class BrokerPolicies:
    """The policies of a file of settings."""

    flush: FlushPolicy
    allocation: AllocationPolicy
    pool: Pool | None
    file_bytes: int
    notes: tuple[str, ...]
    """Settings that the simulation ignores, one sentence each."""


def parse_properties(text: str) -> dict[str, str]:
    """Return the settings of a properties file; of equal names the last one counts.

    Raises BadBrokerConfig.
    """
    settings, problem = parse_lines(text)
    if problem is not None:
        raise BadBrokerConfig(problem)
    return settings


def require_known(names: Mapping[str, str]) -> None:
    """Raise BadBrokerConfig for an unknown name, with the nearest known ones, or a bad value."""
    problem = problem_of(names)
    if problem is not None:
        raise BadBrokerConfig(problem)


def policies_of(settings: Mapping[str, str]) -> BrokerPolicies:
    """Return the policies of a broker with these settings. Raises BadBrokerConfig."""
    require_known(settings)
    chosen = {**DEFAULTS, **settings}
    notes = [f"{name} has no effect here" for name in settings if name in WITHOUT_EFFECT]
    try:
        flush_disk_type = FlushDiskType(chosen["flushDiskType"])
    except ValueError:
        raise BadBrokerConfig(
            f"flushDiskType is {chosen['flushDiskType']!r}; it has to be ASYNC_FLUSH or SYNC_FLUSH"
        ) from None
    pooled = _boolean(chosen, "transientStorePoolEnable")
    if pooled and (flush_disk_type is FlushDiskType.SYNC_FLUSH or chosen.get("brokerRole") == "SLAVE"):
        pooled = False
        notes.append("transientStorePoolEnable has no effect: a pool is for masters with ASYNC_FLUSH")
    try:
        flush = FlushPolicy(
            flush_disk_type,
            _number(chosen, "flushIntervalCommitLog"),
            _number(chosen, "flushCommitLogLeastPages"),
            _number(chosen, "flushCommitLogThoroughInterval"),
            _boolean(chosen, "flushCommitLogTimed"),
            _number(chosen, "syncFlushTimeout"),
        )
        allocation = AllocationPolicy(
            warm_up=WarmUp.TOUCH_AND_FORCE if _boolean(chosen, "warmMapedFileEnable") else WarmUp.NONE,
            flush_least_pages_when_warm_mapped_file=_number(chosen, "flushLeastPagesWhenWarmMapedFile"),
        )
        pool = _pool(chosen) if pooled else None
    except BadBrokerConfig:
        raise
    except ValueError as error:
        raise BadBrokerConfig(str(error)) from error
    file_bytes = _number(chosen, "mappedFileSizeCommitLog")
    return BrokerPolicies(flush, allocation, pool, file_bytes, tuple(notes))


def settings_of(
    flush: FlushPolicy, allocation: AllocationPolicy, pool: Pool | None, *, file_bytes: int, waits: bool = False
) -> dict[str, str]:
    """Return the settings of policies, the inverse of `policies_of`.

    With `waits` a put waits for the acknowledgement of a slave.

    Settings that the policies do not use are left out, and so are file size and `syncFlushTimeout` if they are the
    defaults. Raises ValueError for policies that no settings have.
    """
    if allocation.files_ahead != 1 or allocation.warm_up not in (WarmUp.NONE, WarmUp.TOUCH_AND_FORCE):
        raise ValueError(f"no setting of a broker gives {allocation.name}")
    settings = {"brokerRole": "SYNC_MASTER"} if waits else {}
    settings |= {"flushDiskType": flush.flush_disk_type.value}
    if flush.flush_disk_type is FlushDiskType.ASYNC_FLUSH:
        settings |= {
            "flushCommitLogTimed": _word(flush.flush_commit_log_timed),
            "flushIntervalCommitLog": str(flush.flush_interval_commit_log),
            "flushCommitLogLeastPages": str(flush.flush_commit_log_least_pages),
            "flushCommitLogThoroughInterval": str(flush.flush_commit_log_thorough_interval),
        }
    if str(flush.sync_flush_timeout) != DEFAULTS["syncFlushTimeout"]:
        settings |= {"syncFlushTimeout": str(flush.sync_flush_timeout)}
    settings |= {"transientStorePoolEnable": _word(pool is not None)}
    if pool is not None:
        settings |= {
            "transientStorePoolSize": str(pool.buffers),
            "commitIntervalCommitLog": str(pool.commit.commit_interval_commit_log),
            "commitCommitLogLeastPages": str(pool.commit.commit_commit_log_least_pages),
            "commitCommitLogThoroughInterval": str(pool.commit.commit_commit_log_thorough_interval),
            "fastFailIfNoBufferInStorePool": _word(pool.fast_fail),
        }
    settings |= {"warmMapedFileEnable": _word(allocation.warm_up is not WarmUp.NONE)}
    if allocation.warm_up is not WarmUp.NONE:
        settings |= {"flushLeastPagesWhenWarmMapedFile": str(allocation.flush_least_pages_when_warm_mapped_file)}
    default_bytes = DEFAULTS["mappedFileSizeCommitLog"]
    return settings | ({} if str(file_bytes) == default_bytes else {"mappedFileSizeCommitLog": str(file_bytes)})


def _word(value: bool) -> str:
    return "true" if value else "false"


def _pool(chosen: Mapping[str, str]) -> Pool:
    return Pool(
        _number(chosen, "transientStorePoolSize"),
        CommitPolicy(
            _number(chosen, "commitIntervalCommitLog"),
            _number(chosen, "commitCommitLogLeastPages"),
            _number(chosen, "commitCommitLogThoroughInterval"),
        ),
        _boolean(chosen, "fastFailIfNoBufferInStorePool"),
    )


def _number(settings: Mapping[str, str], name: str) -> int:
    try:
        return int(settings[name])
    except ValueError:
        raise BadBrokerConfig(f"{name} is {settings[name]!r}; it has to be a whole number") from None


def _boolean(settings: Mapping[str, str], name: str) -> bool:
    value = _BOOLEANS.get(settings[name].lower())
    if value is None:
        raise BadBrokerConfig(f"{name} is {settings[name]!r}; it has to be true or false")
    return value
