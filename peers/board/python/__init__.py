"""Adapters of the board for stores in Python, one module per library.

Libraries come from the cache directory of the board if the interpreter has none of its own.
"""

import sys

from tornpage.peers.board.places import python_packages

if (_packages := str(python_packages())) not in sys.path:
    sys.path.append(_packages)
