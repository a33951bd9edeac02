"""A member shows the address of clients that a greeting from the host of its leader named.

Symptom: `contract 8: a status`, because `leader_clients` was `10.0.0.9:1` for an unchanged store.
Cause: the lab connects from the host of a member and greets as that member. A member has to believe this. The greeting
named an address of clients that the member does not have, and the judge expected the true one.
Fix: a greeting that has to be believed names the true address (properties/raft/knocking.py).
Found by: `tornpage explore raft --seed 73`, in its run 147.
"""

from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.raft_case import RaftCase
from tornpage.properties.raft.replay import replay_raft

CASE = RaftCase.from_text("""\
{
 "tornpage_raft": 1,
 "settings": {
  "data_file_bytes": 1024,
  "nodes": true,
  "limits": "small"
 },
 "operations": [
  {
   "op": "knock",
   "member": 2,
   "greeting": "longest frame"
  },
  {
   "op": "run_nodes",
   "milliseconds": 60
  },
  {
   "op": "crash_member",
   "member": 1,
   "kill": true
  },
  {
   "op": "cut_links",
   "way": "out"
  },
  {
   "op": "stop_node",
   "member": 2
  },
  {
   "op": "restart_member"
  },
  {
   "op": "heal_links"
  },
  {
   "op": "run_nodes",
   "milliseconds": 700
  },
  {
   "op": "run_nodes",
   "milliseconds": 200
  },
  {
   "op": "run_nodes",
   "milliseconds": 1500
  },
  {
   "op": "run_nodes",
   "milliseconds": 60
  },
  {
   "op": "run_nodes",
   "milliseconds": 150
  },
  {
   "op": "restart_member",
   "member": 1
  },
  {
   "op": "run_nodes",
   "milliseconds": 60
  },
  {
   "op": "crash_member",
   "kill": true
  },
  {
   "op": "begin_read",
   "member": 2
  },
  {
   "op": "restart_member"
  },
  {
   "op": "propose",
   "member": 2
  },
  {
   "op": "propose",
   "member": 2
  },
  {
   "op": "propose",
   "member": 2
  },
  {
   "op": "run_nodes",
   "milliseconds": 6000
  },
  {
   "op": "knock",
   "member": 1,
   "greeting": "too long frame"
  },
  {
   "op": "propose"
  },
  {
   "op": "run_nodes",
   "milliseconds": 6000
  },
  {
   "op": "run_nodes",
   "milliseconds": 5
  },
  {
   "op": "stop_node",
   "member": 2,
   "milliseconds": 150
  },
  {
   "op": "stop_node",
   "member": 2,
   "milliseconds": 3000
  },
  {
   "op": "crash_member",
   "kill": true
  },
  {
   "op": "heal_links"
  },
  {
   "op": "knock",
   "member": 2,
   "greeting": "later read"
  }
 ]
}""")


def test_a_forged_greeting_of_the_leader_is_shown() -> None:
    with choose_tracker("auto") as tracker:
        assert replay_raft(CASE, tracker=tracker) is None
