"""List what a store has not synced at the answer of a put, and open it without that.

    python unsynced.py names lmdb      # names of files whose directory was not synced
    python unsynced.py data sled       # files written after their last sync

The store runs under strace in a new directory. After the answer it is killed. The names or the contents that a power
loss may take are then taken from a copy, and the store is opened once more. Ends with 1 if the answered record is
missing or the store does not open, with 0 if it is there, with 2 if strace or the store is missing.

Adapters in Go and Rust are the programs named by BOARD_GO and BOARD_RUST, those in Java are in the directory
BOARD_JAVA. They speak JSON lines.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

CALLS = (
    "openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,fsync,fdatasync,syncfs,sync,write,"
    "pwrite64,writev,pwritev,ftruncate"
)
SNIPPETS = {
    "lmdb": (
        "import lmdb; e = lmdb.open(d, map_size=1 << 20)",
        "with e.begin(write=True) as t: t.put(b'k', b'v')",
        "print(e.stat()['entries'])",
    ),
    "lmdb-nosync": (
        "import lmdb; e = lmdb.open(d, map_size=1 << 20, sync=False)",
        "with e.begin(write=True) as t: t.put(b'k', b'v')",
        "print(e.stat()['entries'])",
    ),
    "leveldb": (
        "import plyvel; b = plyvel.DB(d, create_if_missing=True)",
        "b.put(b'k', b'v', sync=True)",
        "print(len(list(b)))",
    ),
    "duckdb": (
        "import duckdb; b = duckdb.connect(d + '/x.db'); b.execute('create table if not exists t (a int)')",
        "b.execute('insert into t values (1)')",
        "print(len(b.execute('select * from t').fetchall()))",
    ),
    "zodb": (
        "import ZODB, ZODB.FileStorage, transaction; b = ZODB.DB(ZODB.FileStorage.FileStorage(d + '/Data.fs'))\n"
        "r = b.open().root()",
        "r['k'] = 'v'; transaction.commit()",
        "print(len(r))",
    ),
    "sqlitedict": (
        "import sqlitedict; b = sqlitedict.SqliteDict(d + '/x.db')",
        "b['k'] = 'v'; b.commit(blocking=True)",
        "print(len(b)); b.close(do_log=False, force=True)",
    ),
    "dumb": ("import dbm.dumb; b = dbm.dumb.open(d + '/x')", "b[b'k'] = b'v'; b.sync()", "print(len(b[b'k']))"),
    "shelve": (
        "import shelve, dbm.dumb; b = shelve.Shelf(dbm.dumb.open(d + '/x'))",
        "b['k'] = 'v'; b.sync()",
        "print(len(b['k']))",
    ),
    "persist-queue": (
        "import persistqueue; b = persistqueue.Queue(d + '/q', autosave=True)",
        "b.put('v')",
        "print(b.get(block=False))",
    ),
    "pickledb": (
        "import pickledb; b = pickledb.PickleDB(d + '/x.json'); b.load()",
        "b.set('k', 'v'); b.save()",
        "print(len(b.all()))",
    ),
}
GO = {"badger", "bbolt", "buntdb", "dque", "etcd-wal", "goleveldb", "pebble", "raft-wal", "tidwall"}
RUST = {"redb", "sled", "fjall", "mrecordlog"}
JAVA = {"h2-mvstore": "lib", "h2-mvstore-later": "later", "mapdb": "lib"}
HELLO, CLOSE = {"do": "hello"}, {"do": "close"}
PUT = {"do": "put", "topic": "T", "queue": 0, "body": "aGk=", "keys": []}
READ = {"do": "read", "topic": "T", "queue": 0, "number": 0}


def adapter(store, directory):
    """Return the command of an adapter that speaks JSON lines."""
    variable = "BOARD_GO" if store in GO else "BOARD_RUST" if store in RUST else "BOARD_JAVA"
    if not os.path.exists(os.environ.get(variable, "")):
        stop(f"set {variable} to the program of the adapters")
    if store in JAVA:
        jars = f"{os.environ[variable]}/classes:{os.environ[variable]}/{JAVA[store]}/*"
        return ["java", "-cp", jars, "board.Board", store.removesuffix("-later"), "sync", directory]
    return [os.environ[variable], store, "sync", directory]


def stop(why):
    print(why, file=sys.stderr)
    sys.exit(2)


def put(store, directory, trace):
    """Run the store under strace up to the answer of one put; it is killed after the answer."""
    watch = ["strace", "-f", "-y", "-qq", "-s", "8", "-e", f"trace={CALLS}", "-o", trace]
    if store in SNIPPETS:
        opened, written, _ = SNIPPETS[store]
        code = f"import os, signal; d = {directory!r}\n{opened}\n{written}\nos.write(1, b'done')\nos.kill(0, 9)"
        done = subprocess.run(
            [*watch, sys.executable, "-c", code], capture_output=True, text=True, start_new_session=True, check=False
        )
        if "done" not in done.stdout:
            stop(f"the store failed: {done.stderr.strip()[-200:]}")
        return
    with subprocess.Popen(
        [*watch, *adapter(store, directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        for request in (HELLO, PUT):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            if "error" in process.stdout.readline():
                stop("the store failed")
        os.killpg(process.pid, signal.SIGKILL)


def is_there(store, directory):
    """Return whether the store opens and has its record, and what it printed."""
    if store in SNIPPETS:
        opened, _, counted = SNIPPETS[store]
        done = subprocess.run(
            [sys.executable, "-c", f"d = {directory!r}\n{opened}\n{counted}"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        lines = (done.stderr if done.returncode else done.stdout).strip().splitlines() or ["nothing"]
        return done.returncode == 0 and lines[-1] != "0", lines[-1] if done.returncode else f"{lines[-1]} records"
    requests = "".join(json.dumps(request) + "\n" for request in (HELLO, READ, CLOSE))
    done = subprocess.run(
        adapter(store, directory), input=requests, capture_output=True, text=True, timeout=60, check=False
    )
    found = '"aGk="' in done.stdout
    last = (done.stderr.strip().splitlines() or ["nothing"])[0]
    return found, "the record" if found else "no record" if done.returncode == 0 else f"it does not open: {last[:120]}"


def calls(trace):
    """Yield the calls of a trace as text, those of several threads joined."""
    begun = {}
    for line in Path(trace).read_text(errors="replace").splitlines():
        thread, _, call = line.partition(" ")
        call = call.strip()
        if call.endswith("<unfinished ...>"):
            begun[thread] = call.removesuffix("<unfinished ...>")
        elif resumed := re.match(r"<\.\.\. \w+ resumed>(.*)", call):
            yield begun.pop(thread, "") + resumed[1]
        else:
            yield call


def moved(name, old, new):
    """Return a name after a rename of itself or of a directory above it."""
    return new + name.removeprefix(old) if name == old or name.startswith(old + "/") else name


def unsynced(trace, directory):
    """Return the names and the contents that no sync covers at the end of a trace."""
    names, data, known = set(), set(), set()
    for call in calls(trace):
        kind = call.partition("(")[0]
        paths = [path for path in re.findall(r'"([^"]*)"', call) if path.startswith(directory)]
        files = [path for path in re.findall(r"\d+<([^>]*)>", call) if path.startswith(directory)]
        if re.search(r"= -1|\?$", call):
            continue
        if kind in ("openat", "open", "creat") and ("O_CREAT" in call or kind == "creat"):
            names |= set(files) - known
            known |= set(files)
            data |= set(files) if "O_TRUNC" in call else set()
        elif kind in ("mkdir", "mkdirat"):
            names |= set(paths)
        elif kind.startswith("rename") and len(paths) == 2:
            names, data, known = ({moved(each, *paths) for each in group} for group in (names, data, known))
            names |= {paths[1]}
            known |= {paths[1]}
        elif kind.startswith("unlink"):
            names -= set(paths)
            known -= set(paths)
        elif kind in ("fsync", "fdatasync", "syncfs", "sync"):
            names = {each for each in names if os.path.dirname(each) not in files}
            data -= set(files)
        elif files:
            data.add(files[0])
    return names, {each for each in data if os.path.isfile(each)}


def main():
    mode, store = sys.argv[1:]
    if shutil.which("strace") is None:
        stop("strace is missing")
    if store not in SNIPPETS.keys() | GO | RUST | JAVA.keys():
        stop(f"unknown store {store}")
    with tempfile.TemporaryDirectory() as work:
        directory = os.path.realpath(os.path.join(work, "store"))
        os.mkdir(directory)
        if store == "raft-wal":  # its first open creates the files; a later put does not sync their names
            requests = "".join(json.dumps(request) + "\n" for request in (HELLO, CLOSE))
            watch = ["strace", "-f", "-y", "-qq", "-e", f"trace={CALLS}", "-o", f"{work}/first"]
            subprocess.run(
                [*watch, *adapter(store, directory)], input=requests, capture_output=True, text=True, check=True
            )
        put(store, directory, f"{work}/trace")
        if store == "raft-wal":
            Path(f"{work}/trace").write_text(Path(f"{work}/first").read_text() + Path(f"{work}/trace").read_text())
        names, data = unsynced(f"{work}/trace", directory)
        copy = os.path.join(work, "copy")
        shutil.copytree(directory, copy)
        if mode == "names":
            lost = sorted(each for each in names if os.path.exists(each))
            for each in lost:
                path = copy + each.removeprefix(directory)
                shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
            said = f"{len(lost)} names not synced, such as {', '.join(os.path.basename(each) for each in lost[:2])}"
        else:
            lost = sorted(data)
            for each in lost:
                os.truncate(copy + each.removeprefix(directory), 0)
            said = f"{len(lost)} files not synced, such as {', '.join(os.path.basename(each) for each in lost[:2])}"
        if not lost:
            print(f"{store} has synced everything")
            return 0
        found, seen = is_there(store, copy)
        print(f"{said}; without them: {seen}")
        return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
