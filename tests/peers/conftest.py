"""The installed release of RocketMQ for tests of a live peer."""

import pytest

from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq.installing import REFERENCE, Release, installed


@pytest.fixture(scope="session")
def release() -> Release:
    """Return the installed release; skip the test if there is none, or no Java."""
    try:
        return installed(REFERENCE)
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
