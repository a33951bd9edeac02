"""Kill a store in a put before its sync, and lose one sector of what it wrote.

    python torn_put.py fjall

The store keeps one record and is closed. strace kills its next put before the first sync, so the put was not answered
and a power loss may keep any sectors of 512 bytes that it wrote. For each written sector a copy is made that has the
old sector instead, and the store is opened. Ends with 1 if a copy does not open or the first record is missing, with 0
if each copy has it, with 2 if strace or the store is missing.

Adapters in Go and Rust are the programs named by BOARD_GO and BOARD_RUST; they speak JSON lines.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GO = {"bbolt", "buntdb", "dque", "goleveldb", "pebble", "raft-wal", "tidwall"}
RUST = {"redb", "sled", "fjall", "mrecordlog"}
SECTOR_BYTES = 512
BODY = "aGk=" * 400
HELLO, CLOSE = {"do": "hello"}, {"do": "close"}
PUT = {"do": "put", "topic": "T", "queue": 0, "body": "aGk=", "keys": []}
SECOND = {"do": "put", "topic": "T", "queue": 0, "body": BODY, "keys": []}
READ = {"do": "read", "topic": "T", "queue": 0, "number": 0}


def stop(why):
    print(why, file=sys.stderr)
    sys.exit(2)


def session(store, directory, requests, watch=()):
    variable = "BOARD_GO" if store in GO else "BOARD_RUST"
    if not os.path.exists(os.environ.get(variable, "")):
        stop(f"set {variable} to the program of the adapters")
    text = "".join(json.dumps(each) + "\n" for each in requests)
    command = [*watch, os.environ[variable], store, "sync", directory]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)


def contents(directory):
    return {path: path.read_bytes() for path in sorted(Path(directory).rglob("*")) if path.is_file()}


def main():
    (store,) = sys.argv[1:]
    if store not in GO | RUST:
        stop(f"unknown store {store}")
    if shutil.which("strace") is None:
        stop("strace is missing")
    with tempfile.TemporaryDirectory() as work:
        good, tries = os.path.join(os.path.realpath(work), "good"), 0
        os.mkdir(good)
        if (done := session(store, good, (HELLO, PUT, CLOSE))).returncode:
            stop(f"the store failed: {done.stderr[-200:]}")
        for call in ("fsync", "fdatasync"):
            for number in range(1, 10):
                store_directory = os.path.join(work, "store")
                shutil.rmtree(store_directory, ignore_errors=True)
                shutil.copytree(good, store_directory)
                watch = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}"]
                watch += ["-e", f"inject={call}:signal=KILL:when={number}"]
                done = session(store, store_directory, (HELLO, SECOND, CLOSE), watch)
                if done.returncode == 0:
                    break
                if '"tornpage"' not in done.stdout or done.stdout.count("\n") > 1:
                    continue  # it died in the open, or after the answer
                before = {str(path).replace(good, store_directory): held for path, held in contents(good).items()}
                for path, after in contents(store_directory).items():
                    old = before.get(str(path), b"")
                    for start in range(0, len(after), SECTOR_BYTES):
                        sector = slice(start, start + SECTOR_BYTES)
                        if old[sector].ljust(len(after[sector]), b"\0") == after[sector]:
                            continue
                        torn = os.path.join(work, "torn")
                        shutil.rmtree(torn, ignore_errors=True)
                        shutil.copytree(store_directory, torn)
                        changed = bytearray(after)
                        changed[sector] = old[sector].ljust(len(after[sector]), b"\0")
                        name = path.relative_to(store_directory)
                        Path(torn, name).write_bytes(changed)
                        tries += 1
                        done = session(store, torn, (HELLO, READ, CLOSE))
                        if done.returncode or '"aGk="' not in done.stdout:
                            lines = done.stderr.strip().splitlines() or ["no message"]
                            seen = (
                                f"it does not open: {lines[0][:120]}" if done.returncode else "the first record is gone"
                            )
                            print(f"killed in the second put, sector {start // SECTOR_BYTES} of {name} is old: {seen}")
                            return 1
        print(f"{store} has its first record without each of {tries} sectors")
        return 0


if __name__ == "__main__":
    sys.exit(main())
