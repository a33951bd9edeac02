"""Test every probe on given machines, and the whole examination on this one."""

import os
import resource
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from tornpage.outcomes import doctor
from tornpage.outcomes.doctor import Check, examine

NAMES = [
    "kernel",
    "python",
    "write-protect",
    "file system",
    "disk space",
    "memory lock",
    "java",
    "spark",
    "fuse",
    "mounts",
    "loop devices",
    "measured disks",
    "cores",
    "memory",
    "fork",
]
MOUNTS = r"""
20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
21 20 0:5 / /data rw - xfs /dev/sdb rw
22 21 0:6 / /data/fast rw shared:7 master:1 - tmpfs tmpfs rw
23 20 0:7 / /mnt/with\040space rw - btrfs /dev/sdc rw
24 20 0:8 / /covered rw - ext4 /dev/sdd rw
25 20 0:9 / /covered rw - ramfs none rw
this line is no mount
"""


def test_examine_answers_every_question_on_this_machine(tmp_path: Path) -> None:
    checks = examine(str(tmp_path))
    assert [check.name for check in checks] == NAMES
    assert all(check.detail for check in checks)
    assert not [check for check in checks if check.detail.startswith("could not be examined")]
    assert not [check for check in checks if check.state == "ok" and check.remedy]


@pytest.mark.parametrize("directory", ["", "/proc/no/such/place", "relative", "/dev/null", "/dev/null/below"])
def test_examine_never_raises_and_creates_nothing(directory: str) -> None:
    existed = os.path.exists(directory)
    checks = examine(directory)
    assert [check.name for check in checks] == NAMES
    assert not [check for check in checks if check.detail.startswith("could not be examined")]
    assert os.path.exists(directory) == existed


def test_a_directory_name_that_the_system_refuses_costs_two_lines() -> None:
    failed = [check for check in examine("nul\0byte") if check.detail.startswith("could not be examined")]
    assert [check.name for check in failed] == ["file system", "disk space"]
    assert {check.state for check in failed} == {"limited"}


def test_a_probe_that_fails_becomes_its_line() -> None:
    def fall_ill() -> Check:
        raise OSError(5, "Input/output error")

    check = doctor._isolated("disk space", fall_ill)
    assert (check.name, check.state) == ("disk space", "limited")
    assert check.detail == "could not be examined: OSError: [Errno 5] Input/output error"


def test_a_check_is_frozen() -> None:
    check = Check("fork", "ok", "processes can fork")
    with pytest.raises(FrozenInstanceError):
        check.state = "absent"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("system", "release", "state"),
    [
        ("Linux", "6.7.0", "ok"),
        ("Linux", "6.18.44-custom", "ok"),
        ("Linux", "10.0", "ok"),
        ("Linux", "6.6.99", "limited"),
        ("Linux", "5.15.0-91-generic", "limited"),
        ("Linux", "unreadable", "ok"),
        ("Darwin", "23.1.0", "absent"),
    ],
)
def test_kernel(system: str, release: str, state: str) -> None:
    check = doctor.check_kernel(system, release)
    assert check.state == state
    assert release in check.detail


def test_python_before_3_11_is_too_old() -> None:
    assert doctor.check_python((3, 10, 14), {}).state == "absent"
    assert doctor.check_python((3, 11, 0), {}) == Check("python", "ok", "Python 3.11.0")


def test_python_without_optimizations_is_limited() -> None:
    build = {"PGO_PROF_USE_FLAG": "-fprofile-use", "CONFIG_ARGS": "'--prefix=/usr/local' '--enable-shared'"}
    found = doctor.check_python((3, 11, 7), build)
    assert (found.state, found.detail) == ("limited", "Python 3.11.7, built without optimizations")
    assert "--enable-optimizations" in found.remedy
    optimized = build | {"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'"}
    assert doctor.check_python((3, 11, 7), optimized).state == "ok"


def test_write_protect_passes_the_reason_on() -> None:
    assert doctor.check_write_protect(lambda: None).state == "ok"
    refused = doctor.check_write_protect(lambda: "The kernel is too old.")
    assert (refused.state, refused.detail) == ("limited", "The kernel is too old.")
    assert refused.remedy


@pytest.mark.parametrize(
    ("directory", "state", "detail"),
    [
        ("/home/x", "ok", "ext4 at /"),
        ("/data", "ok", "xfs at /data"),
        ("/database", "ok", "ext4 at /"),
        ("/data/slow/y", "ok", "xfs at /data"),
        ("/data/fast", "limited", "tmpfs at /data/fast: sync figures are meaningless here"),
        ("/data/fast/a/b", "limited", "tmpfs at /data/fast: sync figures are meaningless here"),
        ("/mnt/with space/z", "ok", "btrfs at /mnt/with space"),
        ("/covered/z", "limited", "ramfs at /covered: sync figures are meaningless here"),
    ],
)
def test_file_system_is_that_of_the_longest_mount(directory: str, state: str, detail: str) -> None:
    check = doctor.check_file_system(directory, MOUNTS)
    assert (check.state, check.detail) == (state, detail)
    assert bool(check.remedy) == (state == "limited")


def test_file_system_follows_links(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/data/fast")
    assert doctor.check_file_system(str(tmp_path / "link"), MOUNTS).detail.startswith("tmpfs")


def test_file_system_without_any_mount_is_limited() -> None:
    assert doctor.check_file_system("/home", "").state == "limited"


def test_disk_space_wants_two_gib() -> None:
    assert doctor.check_disk_space("/data", (2 << 30) - 1).state == "limited"
    assert doctor.check_disk_space("/data", 2 << 30) == Check("disk space", "ok", "2.0 GiB free for /data")


def test_memory_lock_is_unlimited_or_a_number_of_bytes() -> None:
    assert doctor.check_memory_lock(resource.RLIM_INFINITY).state == "ok"
    limited = doctor.check_memory_lock(65536)
    assert (limited.state, limited.detail) == ("limited", "RLIMIT_MEMLOCK 65536 bytes")


def make_java(folder: Path) -> str:
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.2\" 2024-01-16' >&2\n")
    java.chmod(0o755)
    return str(java)


def test_spark_names_what_is_missing_and_the_extra() -> None:
    whole = doctor.check_spark(lambda name: "1.0")
    assert (whole.state, whole.detail) == ("ok", "pyspark 1.0, pyarrow 1.0, pandas 1.0")
    lacking = doctor.check_spark(lambda name: None if name == "pyarrow" else "1.0")
    assert (lacking.state, lacking.detail) == ("absent", "pyarrow not installed")
    assert "tornpage[spark]" in lacking.remedy


def test_java_is_absent_and_the_remedy_names_a_package(tmp_path: Path) -> None:
    check = doctor.check_java({"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)}, lambda java: pytest.fail(java))
    assert check.state == "absent"
    assert "default-jre-headless" in check.remedy


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    on_path, at_home = make_java(tmp_path / "path"), make_java(tmp_path / "home" / "bin")
    environment = {"PATH": str(tmp_path / "path"), "JAVA_HOME": str(tmp_path / "home")}
    assert doctor.check_java(environment, lambda java: 'openjdk version "17.0.1"').detail.startswith(at_home)
    environment["JAVA_HOME"] = str(tmp_path / "elsewhere")
    assert doctor.check_java(environment, lambda java: 'openjdk version "17.0.1"').detail.startswith(on_path)


@pytest.mark.parametrize(
    ("printed", "state"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', "ok"),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', "ok"),
        ('java version "1.8.0_392"', "limited"),
        ('openjdk version "11.0.2"', "limited"),
        ("", "limited"),
        ("Error: could not find libjvm.so", "limited"),
    ],
)
def test_java_versions(tmp_path: Path, printed: str, state: str) -> None:
    make_java(tmp_path / "bin")
    assert doctor.check_java({"JAVA_HOME": str(tmp_path)}, lambda java: printed).state == state


def test_java_is_run_for_its_version(tmp_path: Path) -> None:
    java = make_java(tmp_path / "bin")
    check = doctor.check_java({"PATH": str(tmp_path / "bin")}, doctor._java_version)
    assert check == Check("java", "ok", f'{java}: openjdk version "21.0.2" 2024-01-16')


def test_fuse_device_is_there_or_not(tmp_path: Path) -> None:
    assert doctor.check_fuse(str(tmp_path / "fuse")).state == "absent"
    (tmp_path / "fuse").touch()
    assert doctor.check_fuse(str(tmp_path / "fuse")).state == "ok"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_fuse_device_of_another_user_is_limited(tmp_path: Path) -> None:
    (tmp_path / "fuse").touch(mode=0o000)
    assert doctor.check_fuse(str(tmp_path / "fuse")).state == "limited"


@pytest.mark.parametrize("check", [doctor.check_mounts, doctor.check_loop_devices, doctor.check_measured_disks])
def test_what_faults_need_is_there_or_the_reason_is_named(check: Callable[[Callable[[], str | None]], Check]) -> None:
    assert check(lambda: None).state == "ok"
    refused = check(lambda: "not for this user")
    assert (refused.state, refused.detail) == ("absent", "not for this user")
    assert "tornpage faults" in refused.remedy


def test_cores_are_at_least_two() -> None:
    assert doctor.check_cores(1).state == "limited"
    assert doctor.check_cores(2) == Check("cores", "ok", "2 cores")


def test_memory_counts_what_is_available() -> None:
    text = "MemTotal:       {} kB\nMemFree:         1 kB\nMemAvailable:   {} kB\n"
    plenty = doctor.check_memory(text.format(8 << 20, 4 << 20))
    assert plenty == Check("memory", "ok", "4.0 GiB available of 8.0 GiB")
    assert doctor.check_memory(text.format(8 << 20, 1 << 20)).state == "limited"


def test_fork_is_there_or_not() -> None:
    assert doctor.check_fork(True).state == "ok"
    assert doctor.check_fork(False).state == "absent"


def test_public_names_are_sorted_and_exist() -> None:
    assert doctor.__all__ == sorted(doctor.__all__)
    assert all(hasattr(doctor, name) for name in doctor.__all__)
