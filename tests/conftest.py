"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import settings

# A loaded machine must not turn a slow example into a failure; `--hypothesis-profile` still chooses another one.
settings.register_profile("tests", parent=settings(), deadline=None, print_blob=True)
settings.load_profile("tests")


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return Path(__file__).resolve().parent.parent
