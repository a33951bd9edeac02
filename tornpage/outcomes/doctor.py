"""Check what this machine offers to the parts of tornpage, with remedies.

`examine` never raises and changes nothing on the machine. Each probe is a function of what it looks at, so that tests
hand in other machines; a probe that fails costs its own line only. States: "ok"; "limited", it works with the
restriction named in `detail`; "absent", the parts that need it skip or refuse.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tornpage.properties.judge.rulings import counted

__all__ = [
    "Check",
    "check_cores",
    "check_disk_space",
    "check_file_system",
    "check_fork",
    "check_fuse",
    "check_java",
    "check_kernel",
    "check_loop_devices",
    "check_measured_disks",
    "check_memory",
    "check_memory_lock",
    "check_mounts",
    "check_python",
    "check_spark",
    "check_write_protect",
    "examine",
    "mounts_text",
]

GIB = 1 << 30
KERNEL_MIN = (6, 7)
PYTHON_MIN = (3, 11)
JAVA_MIN = 17
FREE_DISK_BYTES_MIN = 2 * GIB
"""A store with files of their usual size (1 GiB) preallocates one ahead of the one it writes."""
FREE_MEMORY_BYTES_MIN = 2 * GIB
JAVA_TIMEOUT_S = 20.0
MEMORY_FILE_SYSTEMS = ("ramfs", "tmpfs")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's table; `remedy` may be empty."""

    name: str
    state: Literal["ok", "limited", "absent"]
    detail: str
    remedy: str = ""


def examine(directory: str) -> list[Check]:
    """Examine this machine and the file system of `directory`, which may be missing."""
    probes: list[tuple[str, Callable[[], Check]]] = [
        ("kernel", lambda: check_kernel(os.uname().sysname, os.uname().release)),
        ("python", lambda: check_python(sys.version_info[:3], sysconfig.get_config_vars())),
        ("write-protect", lambda: check_write_protect(_write_protect_reason)),
        ("file system", lambda: check_file_system(directory, _read("/proc/self/mountinfo"))),
        ("disk space", lambda: _disk_space(directory)),
        ("memory lock", lambda: check_memory_lock(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0])),
        ("java", lambda: check_java(os.environ, _java_version)),
        ("spark", lambda: check_spark(_installed_version)),
        ("fuse", lambda: check_fuse("/dev/fuse")),
        ("mounts", lambda: check_mounts(_no_mounts_reason)),
        ("loop devices", lambda: check_loop_devices(_no_loop_reason)),
        ("measured disks", lambda: check_measured_disks(_no_measured_disk_reason)),
        ("cores", lambda: check_cores(len(os.sched_getaffinity(0)))),
        ("memory", lambda: check_memory(_read("/proc/meminfo"))),
        ("fork", lambda: check_fork(hasattr(os, "fork"))),
    ]
    return [_isolated(name, probe) for name, probe in probes]


def check_kernel(system: str, release: str) -> Check:
    """Linux 6.7 reports dirty pages; with older kernels pages are compared."""
    if system != "Linux":
        return Check("kernel", "absent", f"{system} {release}", "Run on Linux: the store and the crash lab map files.")
    found = re.match(r"(\d+)\.(\d+)", release)
    if found is not None and (int(found[1]), int(found[2])) < KERNEL_MIN:
        detail = f"Linux {release}: changed pages are found by comparing"
        return Check("kernel", "limited", detail, "Linux 6.7 or newer finds them without comparing.")
    return Check("kernel", "ok", f"Linux {release}")


def check_python(version: Sequence[int], build: Mapping[str, object]) -> Check:
    """Python 3.11 is the oldest supported. `build` has the variables of sysconfig.

    An interpreter without profile-guided optimization explores about 5 % fewer states per second (CPython 3.11). Its
    Makefile has the flags for a profile, and its configure options do not ask for them. Distributions that optimize in
    another way remove the flags from the variables.
    """
    text = ".".join(map(str, version))
    if tuple(version[:2]) < PYTHON_MIN:
        return Check("python", "absent", f"Python {text} is too old", "Install Python 3.11 or newer.")
    if build.get("PGO_PROF_USE_FLAG") and "--enable-optimizations" not in str(build.get("CONFIG_ARGS")):
        remedy = "A Python configured with --enable-optimizations --with-lto explores about 5 % more states per second."
        return Check("python", "limited", f"Python {text}, built without optimizations", remedy)
    return Check("python", "ok", f"Python {text}")


def check_write_protect(reason_of: Callable[[], str | None]) -> Check:
    """`reason_of` returns None if the kernel reports written pages, else the reason."""
    reason = reason_of()
    if reason is None:
        return Check("write-protect", "ok", "userfaultfd reports written pages")
    remedy = "Nothing breaks: pages are compared, which is slower for large files. Linux 6.7 and the right to call "
    return Check(
        "write-protect", "limited", reason, remedy + "userfaultfd (often filtered in containers) make it fast."
    )


def check_file_system(directory: str, mountinfo: str) -> Check:
    """Name the file system of `directory`; syncs are meaningless on one in memory."""
    mount = _mount_of(os.path.realpath(directory), mountinfo)
    if mount is None:
        return Check("file system", "limited", f"no mount found for {directory}")
    mount_point, kind = mount
    if kind in MEMORY_FILE_SYSTEMS:
        detail = f"{kind} at {mount_point}: sync figures are meaningless here"
        return Check("file system", "limited", detail, "Choose a directory on a disk for anything that measures syncs.")
    return Check("file system", "ok", f"{kind} at {mount_point}")


def check_disk_space(directory: str, free_bytes: int) -> Check:
    """Two files of usual size fit."""
    detail = f"{_gib(free_bytes)} free for {directory}"
    if free_bytes < FREE_DISK_BYTES_MIN:
        remedy = f"Free {_gib(FREE_DISK_BYTES_MIN)} for stores with files of 1 GiB; small files need less."
        return Check("disk space", "limited", detail, remedy)
    return Check("disk space", "ok", detail)


def _disk_space(directory: str) -> Check:
    """Return the disk space of a directory; one that does not exist is named as such."""
    existing = _existing(directory)
    check = check_disk_space(str(existing), shutil.disk_usage(existing).free)
    if os.path.isdir(directory):
        return check
    return Check("disk space", "limited", f"{directory} is no directory; {check.detail}", "Name one that exists.")


def check_memory_lock(limit_bytes: int) -> Check:
    """Warm-up of a mapped file locks it into memory, up to RLIMIT_MEMLOCK."""
    if limit_bytes == resource.RLIM_INFINITY:
        return Check("memory lock", "ok", "RLIMIT_MEMLOCK unlimited")
    remedy = "`ulimit -l unlimited`, or leave locking of mapped files off (it is off by default)."
    return Check("memory lock", "limited", f"RLIMIT_MEMLOCK {limit_bytes} bytes", remedy)


def check_java(environment: Mapping[str, str], version_of: Callable[[str], str]) -> Check:
    """Find Java as Spark does, JAVA_HOME before PATH; `version_of` returns its version text."""
    remedy = "Only the Spark pipeline needs it: install a JRE (Debian: default-jre-headless) or set JAVA_HOME."
    java = _java_of(environment)
    if java is None:
        return Check("java", "absent", "no java on PATH or in JAVA_HOME", remedy)
    printed = version_of(java).splitlines()
    line = next((line.strip() for line in printed if "version" in line), None)
    if line is None:
        return Check("java", "limited", f"{java} printed no version", remedy)
    found = re.search(r'"(?:1\.)?(\d+)', line)  # Java 8 calls itself 1.8
    if found is not None and int(found[1]) < JAVA_MIN:
        return Check("java", "limited", f"{java}: {line}; Spark 4 wants Java {JAVA_MIN}", remedy)
    return Check("java", "ok", f"{java}: {line}")


def check_fuse(device: str) -> Check:
    """One form of the recorder for foreign processes mounts a file system."""
    if not os.path.exists(device):
        return Check(
            "fuse", "absent", f"no {device}", "Optional: load the fuse module, or pass the device into the container."
        )
    if not os.access(device, os.R_OK | os.W_OK):
        return Check(
            "fuse", "limited", f"{device} is not open to this user", "Optional: run as a user who may open it."
        )
    return Check("fuse", "ok", device)


def check_mounts(reason_of: Callable[[], str | None]) -> Check:
    """Full disks need mounts of a process; `reason_of` returns None or why they fail."""
    return _for_faults("mounts", "a process may mount a memory file system for itself", reason_of())


def check_loop_devices(reason_of: Callable[[], str | None]) -> Check:
    """Failing disks need loop devices with ext4; `reason_of` returns None or why they fail."""
    return _for_faults("loop devices", "ext4 images can be made and attached", reason_of())


def check_measured_disks(reason_of: Callable[[], str | None]) -> Check:
    """Measured disks need mkfs, loop devices and FUSE.

    `reason_of` returns None or why a file system cannot be measured.
    """
    return _for_faults("measured disks", "ext4, xfs and btrfs can be measured", reason_of())


def check_cores(count: int) -> Check:
    """Count the cores this process may run on."""
    if count < 2:
        return Check(
            "cores", "limited", f"{count} core", "Campaigns run one worker per core; published figures used two."
        )
    return Check("cores", "ok", counted(count, "core"))


def check_memory(meminfo: str) -> Check:
    """Read the memory that programs may still take from the text of /proc/meminfo."""
    kib = {
        name: int(value) for name, value in re.findall(r"^(MemTotal|MemAvailable):\s+(\d+) kB$", meminfo, re.MULTILINE)
    }
    total_bytes, available_bytes = kib["MemTotal"] << 10, kib["MemAvailable"] << 10
    detail = f"{_gib(available_bytes)} available of {_gib(total_bytes)}"
    if available_bytes < FREE_MEMORY_BYTES_MIN:
        return Check("memory", "limited", detail, "Use smaller files and fewer workers.")
    return Check("memory", "ok", detail)


def check_fork(available: bool) -> Check:
    """Campaign workers and killed stores are forked."""
    if available:
        return Check("fork", "ok", "processes can fork")
    return Check("fork", "absent", "no fork here", "Run on Linux.")


def check_spark(version_of: Callable[[str], str | None]) -> Check:
    """Spark needs pyspark, pyarrow and pandas; `version_of` returns None for missing ones."""
    found = {name: version_of(name) for name in ("pyspark", "pyarrow", "pandas")}
    missing = [name for name, version in found.items() if version is None]
    if missing:
        remedy = "Only audit and campaign on Spark need them: install the extra, 'tornpage[spark]'."
        return Check("spark", "absent", f"{', '.join(missing)} not installed", remedy)
    return Check("spark", "ok", ", ".join(f"{name} {version}" for name, version in found.items()))


def _installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _isolated(name: str, probe: Callable[[], Check]) -> Check:
    """Run one probe; an exception becomes its line of the table."""
    try:
        return probe()
    except Exception as error:  # one failed probe does not end the others
        return Check(name, "limited", f"could not be examined: {type(error).__name__}: {error}")


def _write_protect_reason() -> str | None:
    from tornpage.properties.disk.dirty import write_protect_available  # a slow import

    return write_protect_available()


def _for_faults(name: str, offer: str, reason: str | None) -> Check:
    remedy = "" if reason is None else "Only `tornpage faults` needs it: be root, outside of a restricted container."
    return Check(name, "ok" if reason is None else "absent", reason or offer, remedy)


def _no_mounts_reason() -> str | None:
    from tornpage.properties.explore.real_faults.mounts import why_no_mounts

    return why_no_mounts("/")  # the mount is visible to the probe only


def _no_loop_reason() -> str | None:
    from tornpage.properties.explore.real_faults.loop import why_no_loop

    return why_no_loop()


def _no_measured_disk_reason() -> str | None:
    from tornpage.properties.explore.real_faults.file_systems.file_system import FILE_SYSTEMS, why_not

    reasons = {kind: reason for kind in FILE_SYSTEMS if (reason := why_not(kind)) is not None}
    return "; ".join(f"{kind}: {reason}" for kind, reason in reasons.items()) or None


def _java_of(environment: Mapping[str, str]) -> str | None:
    home = environment.get("JAVA_HOME")
    if home:
        java = shutil.which("java", path=os.path.join(home, "bin"))
        if java is not None:
            return java
    return shutil.which("java", path=environment.get("PATH", ""))


def _java_version(java: str) -> str:
    run = subprocess.run(
        [java, "-version"], capture_output=True, text=True, errors="replace", timeout=JAVA_TIMEOUT_S, check=False
    )
    return run.stderr + run.stdout  # java prints its version on standard error


def _mount_of(path: str, mountinfo: str) -> tuple[str, str] | None:
    """Return point and type of the longest mount above `path`, the last of equal ones."""
    best: tuple[str, str] | None = None
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")[0]
        if not separator or len(fields) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        holds = path == point or path.startswith(point.rstrip("/") + "/")
        if holds and (best is None or len(point) >= len(best[0])):
            best = (point, kind)
    return best


def _existing(directory: str) -> Path:
    """Return `directory` or its nearest ancestor that exists."""
    path = Path(os.path.realpath(directory))
    return next(each for each in (path, *path.parents) if each.is_dir())


def mounts_text() -> str:
    """Return the kernel's list of mounts of this process, or an empty text."""
    try:
        return _read("/proc/self/mountinfo")
    except OSError:
        return ""


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="surrogateescape")


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.1f} GiB"
