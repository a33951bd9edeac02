"""Find the command of a reproduction program.

A reproduction is a small program that shows a failure of a store without tornpage. It ends with 1 if the failure
shows, with 0 if it does not, and with another code if it cannot run. Its last line says what was seen.
"""

import os
import shutil
import sys

from tornpage.peers.board import places
from tornpage.peers.board.installing import install_go_reproduction
from tornpage.peers.errors import PeerUnavailable

__all__ = ["command_of"]


def command_of(program: str) -> tuple[list[str], dict[str, str]]:
    """Return command line and environment of a reproduction such as `killed.py badger`.

    Raises PeerUnavailable if its language or its libraries are missing.
    """
    name, *arguments = program.split()
    source = places.SOURCES / "reproductions" / name
    environment = dict(os.environ)
    match source.suffix:
        case ".py":
            environment["PYTHONPATH"] = str(places.python_packages())
            environment["BOARD_GO"], environment["BOARD_RUST"] = str(places.go_program()), str(places.rust_program())
            environment["BOARD_JAVA"] = str(places.java_directory())
            return [sys.executable, "-P", str(source), *arguments], environment
        case ".go":
            return [str(install_go_reproduction(source)), *arguments], environment
        case _:
            jars = places.java_directory() / "lib"
            if shutil.which("java") is None or not jars.is_dir():
                raise PeerUnavailable(f"{name} needs Java and `tornpage board install java`")
            return ["java", "-cp", f"{jars}/*", str(source), *arguments], environment
