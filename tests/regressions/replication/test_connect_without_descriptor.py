"""A slave without a free descriptor tries again as with a master that does not answer.

Symptom: the round of a slave failed with OSError when the process had no descriptor for a connection. The thread of the
node wrote a traceback to the log each second, and the status of the node did not say why it was not joined.
Cause: `TcpNetwork.connect` made its socket before it began to turn errors into None.
Fix: it returns None for each error, and closes the socket.
Found by: `properties/cluster/sockets.py`, which repeats each call at each limit of descriptors.
"""

import gc

from tornpage.impl.replication.tcp import TcpNetwork
from tornpage.properties.cluster.sockets import descriptors_left


def test_connect_without_descriptor_returns_none() -> None:
    network = TcpNetwork()
    listener = network.listen("127.0.0.1:0")
    gc.collect()
    with descriptors_left(0):
        assert network.connect(listener.address) is None
    link = network.connect(listener.address)
    assert link is not None
    link.close()
    listener.close()
