"""Settings of a member that the system cannot have are refused with their names.

Symptom: `serve --raft-id 0 --set data_file_bytes=99999999999999999999999` printed a traceback of OverflowError at the
first entry, and ended. An IPv6 address of a member was accepted, and then refused as "Address family for hostname not
supported".
Cause: sizes and times had no upper bound, and addresses were not checked for the protocol of the links.
Fix: both are checked (impl/raft/settings.py).
Found by: trying the command line with wrong values.
"""

from typing import Any

import pytest

from tornpage.impl.errors import BadConfig
from tornpage.impl.raft.settings import RaftSettings

PEERS = ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"data_file_bytes": 10**23}, "data_file_bytes=1.* is invalid: use 4096 bytes to 1 TiB"),
        ({"index_file_bytes": 10**23}, "index_file_bytes=1.* is invalid: use 4096 bytes to 1 TiB"),
        ({"silence_max": 10**23}, "silence_max=1.* is invalid: use a whole number, 1 to 2,147,483,647"),
        ({"answer_timeout": 1 << 31}, "answer_timeout=2147483648 is invalid: use a whole number"),
        ({"body_bytes_max": 1 << 40}, "body_bytes_max=.* is invalid: use a whole number"),
        ({"pending_max": "many"}, "pending_max='many' is invalid: use a whole number"),
        ({"peers": ("::1:9001",)}, "peers='::1:9001' is invalid: use IP:PORT for each member, with an IPv4 address"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_impossible_setting_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadConfig, match=sentence):
        RaftSettings(**{"peers": PEERS, **settings})
