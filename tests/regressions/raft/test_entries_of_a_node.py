"""Mistakes of members that are run by their nodes, found by drawn groups.

1. A majority confirmed a read in the step in which the leader lost its role. The client got NOT_LEADER, and then
   the same read was answered again. The member ended with an IndexError.
2. A member with entries synced the names inside `dledger-n0`, but not the name of this folder. A power loss could take
   it, with the vote and all entries.
3. LB18: a store mapped all data files when it was opened, also a file with entries that were not committed. A new
   leader cut that file away and filled another one. The store went on to read the removed file: dispatch stopped.
4. A judge counted a connection that its member had not accepted yet.
"""

import pytest

from tornpage.impl.parts import Parts
from tornpage.impl.raft.opening import OpenMember
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.images import compose, disk_state
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.program.raft_case import RaftCase
from tornpage.properties.raft.nodes import node_settings
from tornpage.properties.raft.replay import replay_raft

CONFIRMED_AND_LOST = (
    "tr1-107589a6-eNptjcEKwjAQRP9lzjlEUA_5FZGQmm0ItJuy2Z5K_t0t6s3bMPOYd6BtJElr447wOLDWZamdXo2zFXfvvTMEAbJz5JapYzjDaJ1"
    "IEC7fdaJSOQql_HdWSdxnaxy0IVzH06GTauVilh9v8ebwkQSVncaJC2-pUJQ0qx2ONwNOPCA"
)
MAPPED_AND_CUT = (
    "tr1-a0b3771e-eNqtUctug0AM_Bef9wAlLdX-SlWtDJhkBewir1EUIf69TgJ9pErbQ48ee-yZ8QxxJEbxMSSwLzMMNFTEYHOjHbBQT-J6H7oEBo5"
    "4UsQHWIwO-r73ieoYGmU-ZVm2MngKLsSG0mXsAo0cx5jo34BOb4MVnmhTyZgObtX-TmFKgiyf8a-qyzuitxB25o6Yn8eFMaRWEQMSwRa_0IrNRK8"
    "3vpnoQqy7P-Zyu_E2gFcDiUR82Kv5GSqU-uCqk6ggm2dlUe7y5wd10aCga31PH80z3PvBi1aQBtQHmPWeIo8Grr7WpySJTNdiOYfAYcQ9OcZWdNn"
    "yBqKQ0_I"
)
NOT_ACCEPTED_YET = (
    "tr1-dc5c767b-eNptjsEKwjAMht8l51xEvPRVRErdYi1d05GmBxl991WnMNFbku_n-7NAnkmchswFzHnpKxiQypbzSAUaLpAoXUnAHHGjQ1U7BY7f9PCm"
    "xOOO_tG9Tndy0y7mhUgD-06S4wfgjzZyHiK0C0IhfUb7u5_yPp4QtgajUqkhaBaenScr7qZd01aLa0-g"
)


@pytest.mark.parametrize(
    "token", [CONFIRMED_AND_LOST, MAPPED_AND_CUT, NOT_ACCEPTED_YET], ids=["read", "cut", "backlog"]
)
def test_a_group_of_nodes_holds(token: str) -> None:
    with choose_tracker("auto") as tracker:
        assert replay_raft(RaftCase.from_token(token), tracker=tracker) is None


def test_the_folder_of_a_member_with_entries_survives_a_power_loss() -> None:
    with choose_tracker("auto") as tracker:
        case = RaftCase.from_token(CONFIRMED_AND_LOST)
        files = RecordingFiles(EMPTY_DISK, tracker=tracker)
        member = OpenMember("/member", 0, node_settings(case.settings), files=files, parts=Parts())
        member.hard_state.save(3, 1)
        lost = compose(disk_state(files.base, files.journal, len(files.journal), disk="posix-strict"), {})
        member.close()
        again = OpenMember(
            "/member", 0, node_settings(case.settings), files=RecordingFiles(lost, tracker=tracker), parts=Parts()
        )
        assert (again.hard_state.term, again.hard_state.vote) == (3, 1)
