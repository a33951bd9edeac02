"""The installed releases of RocketMQ for tests of a live peer."""

import pytest

from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq.installing import CLIENT, REFERENCE, Release, installed


@pytest.fixture(scope="session")
def release() -> Release:
    """Return the installed release; skip the test if there is none, or no Java."""
    try:
        return installed(REFERENCE)
    except PeerUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def client() -> Release:
    """Return the installed library of consumers; skip the test if there is none, or no Java."""
    try:
        return installed(REFERENCE, CLIENT)
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
