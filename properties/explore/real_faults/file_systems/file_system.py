"""Format images with ext4, xfs or btrfs, and mount them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from tornpage.properties.explore.real_faults.file_systems.block_device import why_no_fuse
from tornpage.properties.explore.real_faults.loop import CONTROL, attach
from tornpage.properties.explore.real_faults.mounts import Unavailable, may_mount_disks, mounted

__all__ = ["FILE_SYSTEMS", "FileSystem", "Kind", "mounted_image", "why_not"]

Kind = Literal["ext4", "xfs", "btrfs"]
MKFS_SECONDS = 60
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class FileSystem:
    """How a file system is made and mounted.

    `options` are those of its mount. A crash image is mounted with `crash_options` too. A write of the superblock,
    which begins in `superblock`, must not be torn if it has more than a sector.
    """

    name: Kind
    size_bytes: int
    mkfs: tuple[str, ...]
    package: str
    options: str
    crash_options: str = ""
    superblock: range = range(0)

    def formatted(self) -> int:
        """Return a descriptor of a new image in memory. Raises Unavailable."""
        reason, program = why_not(self.name), _program(self)
        if reason is not None or program is None:
            raise Unavailable(reason or self.mkfs[0])
        image = os.memfd_create("tornpage-disk", os.MFD_CLOEXEC)
        os.ftruncate(image, self.size_bytes)
        made = subprocess.run(
            [program, *self.mkfs[1:], f"/proc/self/fd/{image}"],
            pass_fds=(image,),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MKFS_SECONDS,
            check=False,
        )
        if made.returncode != 0:
            os.close(image)
            raise Unavailable(f"{self.mkfs[0]} failed: {' '.join(made.stderr.split())}")
        return image


FILE_SYSTEMS: dict[Kind, FileSystem] = {
    "ext4": FileSystem(
        "ext4",
        16 * MIB,
        ("mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "size=4", "-E", "nodiscard,lazy_itable_init=0"),
        "e2fsprogs",
        "nodiscard",
    ),
    "xfs": FileSystem(
        "xfs",
        64 * MIB,
        ("mkfs.xfs", "-q", "-f", "-K", "--unsupported", "-l", "size=8m"),
        "xfsprogs",
        "nodiscard",
        "nouuid",
    ),
    "btrfs": FileSystem(
        "btrfs",
        128 * MIB,
        ("mkfs.btrfs", "-q", "-f", "-K"),
        "btrfs-progs",
        "nodiscard",
        superblock=range(64 << 10, 68 << 10),
    ),
}


def _program(system: FileSystem) -> str | None:
    return shutil.which(system.mkfs[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def why_not(kind: Kind) -> str | None:
    """Return why a file system cannot be measured here, or None. Nothing is mounted."""
    system = FILE_SYSTEMS[kind]
    if _program(system) is None:
        return f"{system.mkfs[0]} is not installed (Debian: {system.package})"
    if not os.access(CONTROL, os.R_OK | os.W_OK):
        return f"{CONTROL} does not exist or is not accessible to this user"
    if (reason := why_no_fuse()) is not None:
        return reason
    return None if may_mount_disks() else f"no right to mount an {kind} (CAP_SYS_ADMIN)"


@contextmanager
def mounted_image(kind: Kind, image: int, directory: str, *, direct: bool, crashed: bool = False) -> Iterator[str]:
    """Mount an image on a new directory.

    Its loop device detaches with the mount. Raises Unavailable.
    """
    system = FILE_SYSTEMS[kind]
    name, device = attach(image, direct=direct)
    options = ",".join(filter(None, (system.options, system.crash_options if crashed else "")))
    try:
        with mounted(name, directory, kind, options):
            os.close(device)
            device = -1
            yield directory
    finally:
        if device >= 0:
            os.close(device)
