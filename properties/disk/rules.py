"""What each disk keeps and loses: the rules by which crash images are made.

The rules of `ext4`, `xfs` and `btrfs` are measured (docs/disks/measured.md). `journal` has of each rule the weakest
form of the three, so a store that survives on `journal` survives on all of them. properties/disk/legality.py states the
same rules in its own code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tornpage.properties.program.case import Disk

__all__ = ["DISK_RULES", "DiskRules"]

Commits = Literal["directory", "dependencies", "before"]


@dataclass(frozen=True, slots=True)
class DiskRules:
    """The rules of one disk.

    `commits` says which directory operations a sync makes durable. With "directory" a sync of a directory commits the
    operations in it, and a sync of a file commits none. With the other two a sync of a file also commits the
    operations that created or renamed it. "dependencies" adds the earlier operations on the same names, and the
    creation of the directories above. "before" adds all earlier operations. With both a sync of
    a directory commits its own creation too.

    `data_syncs_rename`: a sync of the data alone (fdatasync, msync) commits the operations that renamed the file.
    `resize_commits`: a sync of a file whose size has changed commits all directory operations before that change. If
    `data_syncs_rename` is not set, a sync of the data alone counts only a size that the inode on the disk did not have
    before (properties/disk/resizes.py).
    `may_commit_more`: a sync of a directory, or of a renamed file in it, may also commit the operations on the
    directory, in it, and in new directories below it. Any sync may commit a rename or removal in a directory that was
    synced before, and a rename, removal or link of a file that was. A sync of the data of a file may commit its renames
    and links.

    `splits_moves`: a file that was moved to another directory may be at both names. A sync of its old directory removes
    the old name, and so does a sync of the file if that commits its renames.

    `is_ordered`: operations that no sync committed survive in their order, up to some point. Otherwise any subset does.
    `cuts_whole`: the pages that a cut frees and its smaller size reach the disk together. Each sync of the file commits
    its cuts, also a sync of some bytes.
    `syncs_whole_file`: a sync of some bytes (an `O_DSYNC` write, an msync of a range) is a sync of the whole file.
    `tears`: a page may mix two versions by sectors.
    """

    commits: Commits = "directory"
    is_ordered: bool = False
    cuts_whole: bool = False
    tears: bool = True
    data_syncs_rename: bool = False
    may_commit_more: bool = False
    splits_moves: bool = False
    resize_commits: bool = False
    syncs_whole_file: bool = False


DISK_RULES: Mapping[Disk, DiskRules] = {
    "posix-strict": DiskRules(splits_moves=True),
    "journal": DiskRules("dependencies", is_ordered=True, cuts_whole=True, may_commit_more=True, splits_moves=True),
    "ext4": DiskRules("before", is_ordered=True, cuts_whole=True, resize_commits=True),
    "xfs": DiskRules("before", is_ordered=True, cuts_whole=True, data_syncs_rename=True, resize_commits=True),
    "btrfs": DiskRules(
        "dependencies",
        is_ordered=True,
        cuts_whole=True,
        tears=False,
        data_syncs_rename=True,
        may_commit_more=True,
        splits_moves=True,
        syncs_whole_file=True,
    ),
    "kill": DiskRules(),
}
