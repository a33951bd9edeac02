"""Open a store that has zeros after its last record.

    python zero_tail.py tidwall

A power loss in a put may leave the new size of a file without the new bytes. The put was not answered. The store keeps
one record, is closed cleanly, and gets the zeros. Ends with 1 if it does not open, or if it has other records than
before; with 0 if it has its record alone; with 2 if the store is missing.

Adapters in Go are the program named by BOARD_GO; they speak JSON lines.
"""

import json
import os
import subprocess
import sys
import tempfile

BYTES = 40
SEMIDBM = "import semidbm; b = semidbm.open(d + '/x', 'c'); "
HELLO, CLOSE = {"do": "hello"}, {"do": "close"}
PUT = {"do": "put", "topic": "T", "queue": 0, "body": "aGk=", "keys": []}
READS = ({"do": "read", "topic": "T", "queue": 0, "number": number} for number in (0, 1))


def run(store, directory, *requests):
    if store == "semidbm":
        code = "b[b'k'] = b'v'; b.close()" if PUT in requests else "print(sorted(b.keys()))"
        command, text = [sys.executable, "-c", f"d = {directory!r}\n{SEMIDBM}{code}"], ""
    else:
        if not os.path.exists(os.environ.get("BOARD_GO", "")):
            print("set BOARD_GO to the program of the adapters", file=sys.stderr)
            sys.exit(2)
        command = [os.environ["BOARD_GO"], store, "sync", directory]
        text = "".join(json.dumps(request) + "\n" for request in requests)
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)


(store,) = sys.argv[1:]
with tempfile.TemporaryDirectory() as work:
    if run(store, work, HELLO, PUT, CLOSE).returncode:
        print("the store failed", file=sys.stderr)
        sys.exit(2)
    reads = list(READS)
    before = run(store, work, HELLO, *reads, CLOSE).stdout
    files = [os.path.join(folder, name) for folder, _, names in os.walk(work) for name in names]
    path = max((each for each in files if "lock" not in each), key=os.path.getsize)
    size = os.path.getsize(path)
    os.truncate(path, size + BYTES)
    after = run(store, work, HELLO, *reads, CLOSE)
    name = os.path.basename(path)
    if after.returncode:
        last = (after.stderr.strip().splitlines() or ["no error"])[-1]
        print(f"{BYTES} zero bytes after the {size} of {name}: it does not open: {last[:120]}")
        sys.exit(1)
    if after.stdout != before:
        answers = " ".join(after.stdout.split("\n")[1:3])
        print(f"{BYTES} zero bytes after the {size} of {name}: the answers to reads are {answers}")
        sys.exit(1)
    print(f"{store} has its record alone")
