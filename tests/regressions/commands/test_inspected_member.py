"""`inspect` recognises the directory of a member of a Raft group.

Symptom: `tornpage inspect` called the directory of a member broken, with the finding CL_MISSING and the advice to
restore the files of the commit log. Its log was intact.
Cause: a member keeps its log in `dledger-n0`, and its directory has the queues or the lock file of a store.
Fix: the directory is refused, with the command that reads it (properties/decode/opening.py).
Found by: trying the command line with the directory of a member.
"""

from pathlib import Path

import pytest

from tornpage.properties.decode.opening import InspectError, open_view


def made(directory: Path, *names: str) -> Path:
    for name in names:
        (directory / name).mkdir(parents=True)
    return directory


@pytest.mark.parametrize("others", [("consumequeue/T/0",), ("lock",), ()])
def test_directory_of_a_member_is_refused_with_the_command_that_reads_it(
    tmp_path: Path, others: tuple[str, ...]
) -> None:
    member = made(tmp_path, "dledger-n2/data", "dledger-n2/index", *others)
    with pytest.raises(InspectError, match=r"of member n2 of a Raft group; `tornpage serve .* --raft-id 2"):
        open_view(member)


def test_log_of_a_member_is_refused_with_its_parent(tmp_path: Path) -> None:
    made(tmp_path, "dledger-n2/data")
    with pytest.raises(InspectError, match=f"the Raft log of a member; give its parent, {tmp_path}$"):
        open_view(tmp_path / "dledger-n2")


def test_older_commit_log_beside_a_member_is_inspected(tmp_path: Path) -> None:
    assert open_view(made(tmp_path, "dledger-n0/data", "commitlog")).files == ()
