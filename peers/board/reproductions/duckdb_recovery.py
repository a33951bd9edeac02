"""Kill DuckDB in a checkpoint, open it, and lose what the open did not sync.

A row is committed, so it is in the synced write-ahead log. A process is killed in a checkpoint, before a sync of the
database file. The next open believes the header that the killed process wrote and removes the log. strace shows whether
it syncs the database file before. A power loss then takes the unsynced header: the copy gets the header pages of before
the checkpoint. Ends with 1 if the committed row is missing in the copy.
"""

import os
import shutil
import subprocess
import sys
import tempfile

HEADERS = 3 * 4096


def run(code, *watch):
    begin = "import duckdb, os\n"
    return subprocess.run([*watch, sys.executable, "-c", begin + code], capture_output=True, text=True, check=False)


if shutil.which("strace") is None:
    print("strace is missing", file=sys.stderr)
    sys.exit(2)
with tempfile.TemporaryDirectory() as work:
    work = os.path.realpath(work)
    path, copy, trace = f"{work}/x.db", f"{work}/copy.db", f"{work}/trace"
    opened = f"b = duckdb.connect({path!r}, config={{'threads': 1}})\n"
    counted = "b.execute('select count(*) from t').fetchone()[0]"
    for number in range(1, 9):
        for name in (path, path + ".wal", copy, copy + ".wal"):
            if os.path.exists(name):
                os.remove(name)
        made = run(opened + "b.execute('create table t (a int)'); b.close()")
        if made.returncode:
            print(made.stderr, file=sys.stderr)
            sys.exit(2)
        run(opened + "b.execute('insert into t values (1)'); os.kill(os.getpid(), 9)")
        with open(path, "rb") as file:
            old = file.read(HEADERS)
        inject = ["-e", "trace=fsync,fdatasync", "-e", f"inject=fsync,fdatasync:signal=KILL:when={number}"]
        killed = run(opened + "b.execute('checkpoint'); b.close()", "strace", "-f", "-qq", "-o", trace, *inject)
        if killed.returncode == 0:
            break
        if not os.path.exists(path + ".wal"):
            continue
        watch = ["strace", "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync,unlink,unlinkat,ftruncate", "-o", trace]
        again = run(opened + f"print({counted}, flush=True); os.kill(os.getpid(), 9)", *watch)
        with open(trace) as file:
            calls = [line for line in file if path in line]
        removed = not os.path.exists(path + ".wal") or os.path.getsize(path + ".wal") == 0
        synced = any("sync" in line and f"<{path}>" in line for line in calls)
        if not removed or synced or again.stdout.strip() != "1":
            continue
        shutil.copy(path, copy)
        with open(copy, "r+b") as file:
            file.write(old)
        seen = run(f"b = duckdb.connect({copy!r}); print({counted})")
        rows = seen.stdout.strip() or (seen.stderr.strip().splitlines() or ["nothing"])[-1]
        if rows != "1":
            print(
                f"killed before sync {number} of a checkpoint; the open finds the row and removes the log without a "
                f"sync of the database; with the old header pages: {rows} rows"
            )
            sys.exit(1)
    print("the committed row is there after each kill")
