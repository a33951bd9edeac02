"""Kill a store before system calls that change files, and open it again.

    python killed.py badger

The store keeps one record and is closed cleanly. Copies of its directory are opened once more, with one more put and
a close, under strace, which kills the process before the first, second, third … call of one kind. Each copy is opened
again. A kill loses nothing that was written. Ends with 1 if the first record is missing or a copy does not open, with 0
if all copies are right, with 2 if strace or the store is missing.

Adapters in Go and Rust are the programs named by BOARD_GO and BOARD_RUST; they speak JSON lines.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

CALLS = ("unlinkat", "unlink", "ftruncate", "renameat", "rename", "fallocate", "pwrite64", "write", "mkdirat", "openat")
TRIES = 12
SNIPPETS = {
    "tinydb": (
        "import tinydb; b = tinydb.TinyDB(d + '/x.json')",
        "b.insert({'record': 'hi'}); b.close()",
        "print(len(b))",
    ),
}
GO = {"badger", "bbolt", "buntdb", "dque", "goleveldb", "pebble", "raft-wal", "tidwall"}
RUST = {"redb", "sled", "fjall", "mrecordlog"}
HELLO, CLOSE = {"do": "hello"}, {"do": "close"}
PUT = {"do": "put", "topic": "T", "queue": 0, "body": "aGk=", "keys": []}
READ = {"do": "read", "topic": "T", "queue": 0, "number": 0}


def stop(why):
    print(why, file=sys.stderr)
    sys.exit(2)


def run(store, directory, requests, watch=()):
    """Run a session of the store; return its exit code, its answers and its errors."""
    if store in SNIPPETS:
        opened, written, counted = SNIPPETS[store]
        code = f"d = {directory!r}\n{opened}\n{written if PUT in requests else counted}"
        command, text = [sys.executable, "-c", code], ""
    else:
        variable = "BOARD_GO" if store in GO else "BOARD_RUST"
        if not os.path.exists(os.environ.get(variable, "")):
            stop(f"set {variable} to the program of the adapters")
        command = [os.environ[variable], store, "sync", directory]
        text = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([*watch, *command], input=text, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr.strip()


def main():
    (store,) = sys.argv[1:]
    if shutil.which("strace") is None:
        stop("strace is missing")
    if store not in SNIPPETS.keys() | GO | RUST:
        stop(f"unknown store {store}")
    with tempfile.TemporaryDirectory() as work:
        good = os.path.join(work, "good")
        os.mkdir(good)
        code, _, errors = run(store, good, (HELLO, PUT, CLOSE))
        if code:
            stop(f"the store failed: {errors[-200:]}")
        kills = 0
        for call in CALLS:
            for number in range(1, TRIES + 1):
                copy, trace = os.path.join(work, f"{call}-{number}"), os.path.join(work, "trace")
                shutil.copytree(good, copy)
                watch = ["strace", "-f", "-y", "-qq", "-o", trace, "-e", f"trace={call}"]
                watch += ["-e", f"inject={call}:signal=KILL:when={number}", *files_of(store, copy)]
                code, _, _ = run(store, copy, (HELLO, PUT, CLOSE), watch)
                if code == 0:
                    break
                kills += 1
                code, answers, errors = run(store, copy, (HELLO, READ, CLOSE))
                found = '"aGk="' in answers or (store in SNIPPETS and code == 0 and answers.strip() not in ("", "0"))
                if not found:
                    seen = (
                        "the first record is gone"
                        if code == 0
                        else f"it does not open: {errors.splitlines()[-1][:120]}"
                    )
                    print(f"killed before call {number} of {call}{target(trace, copy)}: {seen}")
                    return 1
        print(f"{store} opened with its record after each of {kills} kills")
        return 0


def files_of(store, directory):
    """Return options of strace that leave out the files of the interpreter."""
    if store not in SNIPPETS:
        return []
    return [word for name in os.listdir(directory) for word in ("-P", os.path.join(directory, name))]


def target(trace, directory):
    """Return the file of the last call on a file of the store, as text."""
    with open(trace) as file:
        names = [line.partition(directory + "/")[2] for line in file if directory + "/" in line]
    return " on " + names[-1].split(">")[0].split('"')[0] if names else ""


if __name__ == "__main__":
    sys.exit(main())
