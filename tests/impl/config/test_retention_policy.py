"""Test decisions of retention: hours, ages, disk limits and refused settings."""

import pytest

from tests.support.impl.retained import HOUR_MS, NIGHT_MS, NOON_MS
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.retention_policy import RetentionPolicy, Room
from tornpage.impl.errors import BadConfig
from tornpage.impl.io.files import DiskUsage


@pytest.mark.parametrize(
    ("delete_when", "zone", "at_ms", "is_time"),
    [
        ("04", "UTC", NIGHT_MS, True),
        ("04", "UTC", NIGHT_MS + HOUR_MS - 1, True),
        ("04", "UTC", NIGHT_MS + HOUR_MS, False),
        ("04", "UTC", NIGHT_MS - 1, False),
        ("4;12", "UTC", NOON_MS, True),
        ("0;23", "UTC", NOON_MS, False),
        ("13", "Europe/Berlin", NOON_MS, True),
        ("12", "Europe/Berlin", NOON_MS, False),
    ],
)
def test_the_hour_counts_as_a_whole_where_the_store_is(delete_when: str, zone: str, at_ms: int, is_time: bool) -> None:
    assert RetentionPolicy(delete_when=delete_when, time_zone=zone).is_time_to_delete(at_ms) is is_time


@pytest.mark.parametrize(("hours", "age_ms", "expired"), [(72, 72 * HOUR_MS, True), (72, 72 * HOUR_MS - 1, False),
                                                          (0, 0, True), (0, -1, False)])  # fmt: skip
def test_a_file_expires_with_its_newest_message(hours: int, age_ms: int, expired: bool) -> None:
    policy = RetentionPolicy(file_reserved_time=hours)
    assert policy.is_expired(newest_ms=NOON_MS, now_ms=NOON_MS + age_ms) is expired


@pytest.mark.parametrize(
    ("log_ratio", "queue_ratio", "room"),
    [
        (0.75, 0.10, Room()),
        (0.76, 0.10, Room(wants_deletion=True)),
        (0.85, 0.10, Room(wants_deletion=True)),
        (0.86, 0.10, Room(wants_deletion=True, urgent=True)),
        (0.90, 0.10, Room(wants_deletion=True, urgent=True)),
        (0.91, 0.10, Room(is_full=True, wants_deletion=True, urgent=True)),
        (0.10, 0.76, Room(wants_deletion=True)),
        (0.10, 0.91, Room(is_full=True, wants_deletion=True, urgent=True)),
        (0.80, 0.91, Room(is_full=True, wants_deletion=True, urgent=True)),
        (None, None, Room()),
        (None, 0.80, Room(wants_deletion=True)),
    ],
)
def test_the_fuller_of_both_disks_decides(log_ratio: float | None, queue_ratio: float | None, room: Room) -> None:
    assert RetentionPolicy().room(log_ratio, queue_ratio) == room


@pytest.mark.parametrize(("per_cent", "wants_at"), [(75, 76), (5, 11), (10, 11), (99, 96), (95, 96)])
def test_the_ratio_of_a_run_is_clamped(per_cent: int, wants_at: int) -> None:
    policy = RetentionPolicy(disk_max_used_space_ratio=per_cent)
    assert not policy.room((wants_at - 1) / 100, None).wants_deletion
    assert policy.room(wants_at / 100, None).wants_deletion


def test_age_counts_on_a_full_disk_when_force_is_not_allowed() -> None:
    policy = RetentionPolicy(clean_file_forcibly_enable=False)
    assert policy.room(0.99, None) == Room(is_full=True, wants_deletion=True)


@pytest.mark.parametrize(("used", "total", "ratio"), [(0, 1000, 0.0), (1, 1000, 0.01), (10, 1000, 0.01),
                                                      (11, 1000, 0.02), (1000, 1000, 1.0)])  # fmt: skip
def test_a_used_share_is_rounded_up_to_a_per_cent(used: int, total: int, ratio: float) -> None:
    assert DiskUsage(total, total - used).used_ratio == ratio


@pytest.mark.parametrize("delete_when", ["", "4 o'clock", "24", "-1", "04;", "4,5", "4;99"])
def test_hours_that_there_are_not_are_refused(delete_when: str) -> None:
    with pytest.raises(BadConfig, match="delete_when"):
        MessageStoreConfig(delete_when=delete_when)


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "/etc/passwd", "../UTC"])
def test_zones_that_there_are_not_are_refused(zone: str) -> None:
    with pytest.raises(BadConfig, match="time_zone"):
        MessageStoreConfig(time_zone=zone)


@pytest.mark.parametrize(
    "name", ["file_reserved_time", "delete_commit_log_files_interval", "disk_max_used_space_ratio"]
)
def test_negative_times_are_refused(name: str) -> None:
    with pytest.raises(BadConfig, match=name):
        MessageStoreConfig(**{name: -1})  # type: ignore[arg-type]
