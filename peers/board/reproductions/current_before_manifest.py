"""Open a store of the LevelDB family whose CURRENT names a manifest without a name.

    python current_before_manifest.py pebble

The store keeps one record and is closed. Its next open writes a new manifest and syncs it, renames a temporary file to
CURRENT and syncs the directory. strace kills the store before that rename, and shows that the directory was not synced
after the creation of the manifest. POSIX then lets a power loss right after the rename keep the new CURRENT and lose
the name of the manifest. This is done to a copy, which is opened. Ends with 1 if it does not open or the record is
missing, with 0 if the record is there, with 2 if strace or the store is missing.

Pebble is in the program named by BOARD_GO, which speaks JSON lines.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROCKSDB = "import rocksdict; b = rocksdict.Rdict(d, options=rocksdict.Options(raw_mode=True))\n"
ROCKSDB_PUT = "w = rocksdict.WriteOptions(); w.sync = True; b.put(b'k', b'v', w); b.close()"
CALLS = "rename,renameat,renameat2,fsync,fdatasync,openat,creat"
HELLO, CLOSE = {"do": "hello"}, {"do": "close"}
PUT = {"do": "put", "topic": "T", "queue": 0, "body": "aGk=", "keys": []}
READ = {"do": "read", "topic": "T", "queue": 0, "number": 0}


def stop(why):
    print(why, file=sys.stderr)
    sys.exit(2)


def session(store, directory, action, watch=()):
    """Open the store, put or read one record, and close it.

    Returns exit code, output and errors.
    """
    if store == "rocksdb":
        code = ROCKSDB + {"put": ROCKSDB_PUT, "read": "print(b.get(b'k'))"}[action]
        command, text = [sys.executable, "-c", f"d = {directory!r}\n{code}"], ""
    else:
        if not os.path.exists(os.environ.get("BOARD_GO", "")):
            stop("set BOARD_GO to the program of the adapters")
        command = [os.environ["BOARD_GO"], store, "sync", directory]
        text = "".join(json.dumps(each) + "\n" for each in (HELLO, PUT if action == "put" else READ, CLOSE))
    done = subprocess.run([*watch, *command], input=text, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr.strip()


def renames_to_current(store, directory, trace):
    """Open a copy under strace, and return the call and the number of the rename to CURRENT."""
    copy = directory + ".counted"
    shutil.copytree(directory, copy)
    session(store, copy, "read", ["strace", "-f", "-y", "-qq", "-s", "300", "-e", f"trace={CALLS}", "-o", trace])
    counts = {}
    with open(trace) as file:
        for line in file:
            call = re.match(r"\d+\s+(rename\w*)\(", line)
            if call is not None:
                counts[call[1]] = counts.get(call[1], 0) + 1
                if line.rsplit('"', 2)[1].endswith("/CURRENT"):
                    return call[1], counts[call[1]]
    return "", 0


def main():
    (store,) = sys.argv[1:]
    if store not in ("pebble", "rocksdb"):
        stop(f"unknown store {store}")
    if shutil.which("strace") is None:
        stop("strace is missing")
    with tempfile.TemporaryDirectory() as work:
        directory, trace = os.path.join(os.path.realpath(work), "store"), os.path.join(work, "trace")
        os.mkdir(directory)
        code, _, errors = session(store, directory, "put")
        if code:
            stop(f"the store failed: {errors[-200:]}")
        call, number = renames_to_current(store, directory, trace)
        if not number:
            print(f"the second open of {store} renames nothing to CURRENT")
            return 0
        watch = ["strace", "-f", "-y", "-qq", "-s", "300", "-e", f"trace={CALLS}", "-o", trace]
        session(store, directory, "read", [*watch, "-e", f"inject={call}:signal=KILL:when={number}"])
        with open(trace) as file:
            text = file.read()
        made = re.findall(r'"[^"]*/(MANIFEST-\d+)", [^)]*O_CREAT', text)
        source = re.findall(r'"([^"]*)"', [line for line in text.splitlines() if f"{call}(" in line][-1])[0]
        after = text.rpartition(f'/{made[-1]}"')[2] if made else ""
        if not made or re.search(rf"f(data)?sync\(\d+<{re.escape(directory)}>\)", after):
            print("the directory is synced between the creation of the manifest and the rename to CURRENT")
            return 0
        os.rename(source, f"{directory}/CURRENT")
        os.remove(f"{directory}/{made[-1]}")
        code, answers, errors = session(store, directory, "read")
        said = f"no sync of the directory between the creation of {made[-1]} and the rename to CURRENT"
        if code:
            lines = (
                [line for line in errors.splitlines() if "MANIFEST" in line] or errors.splitlines() or ["no message"]
            )
            print(f"{said}; without that name: {lines[0].replace(directory, '')[:160]}")
            return 1
        found = '"aGk="' in answers or "b'v'" in answers
        print(f"{said}; without that name the record is {'there' if found else 'gone'}")
        return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
