"""A member with messages tells why its end was not a clean one.

Symptom: `tornpage serve` of a member with messages ended as after a clean exit, although a sync of a queue, of the
checkpoint or of the floor had failed while its store was closed. The abort marker stayed, and the next opening was one
after an unclean exit.
Cause: the close of a member looked at exceptions only. The store notes such a failure and raises nothing.
Fix: the close of a member returns the reason of its store, as that of a node without a group does.
Found by: `properties/cluster/whole_nodes.py`, in which each sync of a closing member fails once.
"""

from functools import partial

import pytest

from tornpage.properties.cluster import whole_nodes
from tornpage.properties.contract import observed


@pytest.mark.parametrize("number", [1, 3, 4])
def test_a_member_tells_of_a_failed_sync_at_its_end(number: int) -> None:
    with whole_nodes._machine() as machine:
        member = observed("an opening", partial(whole_nodes._member, machine, "messages"))
        machine.step()
        machine.ask("127.0.0.1:5", {"op": "put", "topic": "T", "body": "kept"})
        machine.files.fail_sync(number)
        told = member.close()
        assert machine.files.has_failed
        assert "clean exit not noted" in told
        assert [path for path in machine.files.paths() if path.endswith("/abort")]
