"""Kill a store in its first open, put a record, cut the power on a real file system.

    python power_cut.py ext4 raft-wal
    python power_cut.py btrfs etcd-wal renameat

A file system is made in an image and mounted over a loop device. strace kills the first open before its first, second,
third … sync, or after its first, second … rename. The kernel writes everything back before the rename, as it may do at
any time. The store is opened again and answers one put. At this answer the image is copied, which is a power loss that
keeps every block that the file system has written. It is copied a second time after another program has synced a file
of its own. This sync writes the journal of the file system and no data of the store. Each copy is mounted and the store
is opened.

Ends with 1 if the store does not open or the answered record is missing after one of the kills, with 0 if the record is
there after each, with 2 if root, strace, the file system or the store is missing. With the argument `open` no
record is put: the power is cut after the second open, and the store has to open. The name of a system call leaves out
the kills at other calls.

Adapters in Go and Rust are the programs named by BOARD_GO and BOARD_RUST; they speak JSON lines.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

GO = {"bbolt", "buntdb", "dque", "etcd-wal", "goleveldb", "pebble", "raft-wal", "tidwall"}
RUST = {"redb", "sled", "fjall", "mrecordlog"}
MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
IMAGE_BYTES = {"ext4": 128 << 20, "xfs": 320 << 20, "btrfs": 160 << 20}
SYNCS, RENAMES = ("fsync", "fdatasync"), ("rename", "renameat", "renameat2")
TRIES, REPEATS = 8, 3
HELLO, CLOSE = {"do": "hello"}, {"do": "close"}
PUT = {"do": "put", "topic": "T", "queue": 0, "body": "aGk=", "keys": []}
READ = {"do": "read", "topic": "T", "queue": 0, "number": 0}


def stop(why):
    print(why, file=sys.stderr)
    sys.exit(2)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        stop(f"{command[0]} failed: {done.stderr.strip()[-200:]}")


def adapter(store, directory):
    variable = "BOARD_GO" if store in GO else "BOARD_RUST"
    if not os.path.exists(os.environ.get(variable, "")):
        stop(f"set {variable} to the program of the adapters")
    return [os.environ[variable], store, "sync", directory]


def killed(store, directory, trace, call, number):
    """Open a store that is killed, and return where, or "" if it was not killed."""
    watch = ["strace", "-f", "-y", "-qq", "-o", trace, "-e", f"trace={call}"]
    watch += ["-e", f"inject={call}:signal=KILL:when={number}"]
    text = "".join(json.dumps(each) + "\n" for each in (HELLO, CLOSE))
    environment = {**os.environ, "GOMAXPROCS": "1"}  # fewer threads, so that more of the counted calls are of one
    done = subprocess.run(
        [*watch, *adapter(store, directory)], input=text, capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode == 0:
        return ""
    with open(trace) as file:
        lines = [line for line in file if f"{call}(" in line]
    if call in SYNCS:
        return (
            f"before {call} {number} of {lines[-1].partition('<')[2].partition('>')[0].removeprefix(directory) or '/'}"
        )
    source, target = re.findall(r'"([^"]*)"', lines[-1])
    os.sync()
    os.rename(source, target)
    return f"after the rename of {source.removeprefix(directory)} to {target.removeprefix(directory)}"


def answered(store, mount, requests, image, copies):
    """Open the store, send requests, and copy the image after the last answer.

    Returns whether all were answered.
    """
    with subprocess.Popen(
        adapter(store, f"{mount}/store"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, start_new_session=True,
    ) as process:  # fmt: skip
        answers = []
        for request in requests:
            try:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
            except BrokenPipeError:
                break
            answers.append(process.stdout.readline())
        run("cp", "--sparse=always", image, copies[0])
        with open(f"{mount}/other", "wb") as other:
            other.write(b"other")
            other.flush()
            os.fsync(other.fileno())
        run("cp", "--sparse=always", image, copies[1])
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return len(answers) == len(requests) and all(each and "error" not in each for each in answers)


def seen_after(store, copy, mount, *, has_record):
    """Mount the copy, open the store, and return what is wrong, or ""."""
    run("mount", "-o", "loop", copy, mount)
    try:
        text = "".join(json.dumps(each) + "\n" for each in (HELLO, READ, CLOSE))
        done = subprocess.run(
            adapter(store, f"{mount}/store"), input=text, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        run("umount", mount)
    if done.returncode:
        return f"it does not open: {(done.stderr.strip().splitlines() or ['no message'])[0].replace(mount, '')[:120]}"
    return "" if '"aGk="' in done.stdout or not has_record else "the answered record is gone"


def try_all(kind, store, requests, calls, work):
    image, mount, tried = f"{work}/image", f"{work}/mount", 0
    copies = {f"{work}/copy": "a power loss", f"{work}/copy2": "the sync of a file of another program and a power loss"}
    os.mkdir(mount)
    for call in calls:
        for number in (
            1 + each // REPEATS for each in range(TRIES * REPEATS)
        ):  # strace counts the calls of each thread
            with open(image, "wb") as file:
                file.truncate(IMAGE_BYTES[kind])
            run(*MKFS[kind], image)
            run("mount", "-o", "loop", image, mount)
            try:
                os.mkdir(f"{mount}/store")
                os.sync()
                at = killed(store, f"{mount}/store", f"{work}/trace", call, number)
                whole = at and answered(store, mount, requests, image, list(copies))
            finally:
                run("umount", mount)
            if not whole:
                continue
            tried += 1
            for copy, what in copies.items():
                if wrong := seen_after(store, copy, mount, has_record=PUT in requests):
                    after = "a put that was answered" if PUT in requests else "a second open"
                    print(f"{kind}, killed {at}, then {after}, {what}: {wrong}")
                    return 1
    print(f"{store} on {kind} has its record after each of {tried} kills and power losses")
    return 0


def main():
    kind, store, *words = sys.argv[1:]
    calls = [word for word in words if word in (*SYNCS, *RENAMES)] or [*SYNCS, *RENAMES]
    if kind not in MKFS or store not in GO | RUST:
        stop(f"unknown file system or store: {kind} {store}")
    if os.geteuid() or shutil.which("strace") is None:
        stop("root or strace is missing")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if shutil.which(MKFS[kind][0]) is None:
        stop(f"{MKFS[kind][0]} is missing")
    if "POWER_CUT_MOUNTS" not in os.environ:  # the mounts are those of a process of its own, and end with it
        again = ["unshare", "-m", sys.executable, *sys.argv]
        return subprocess.run(again, env={**os.environ, "POWER_CUT_MOUNTS": "own"}, check=False).returncode
    with tempfile.TemporaryDirectory() as work:
        requests = (HELLO,) if "open" in words else (HELLO, PUT)
        return try_all(kind, store, requests, calls, os.path.realpath(work))


if __name__ == "__main__":
    sys.exit(main())
