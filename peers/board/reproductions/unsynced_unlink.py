"""Commit in SQLite (DELETE, FULL), and lose the deletion of the journal.

The deletion of the journal commits the transaction. FULL does not sync the directory after it (EXTRA does). strace
shows that, and then kills a second commit before the deletion, which leaves the same files as a power loss that takes
an unsynced deletion. Ends with 1 if the committed row is missing after the next open.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

CODE = """
import sqlite3
b = sqlite3.connect({path!r}, isolation_level=None)
b.execute("pragma journal_mode=delete")
b.execute("pragma synchronous=full")
b.execute("insert into t values (1)")
"""

if shutil.which("strace") is None:
    print("strace is missing", file=sys.stderr)
    sys.exit(2)
with tempfile.TemporaryDirectory() as work:
    path, trace = os.path.realpath(os.path.join(work, "x.db")), os.path.join(work, "trace")
    with sqlite3.connect(path) as database:
        database.execute("create table t (a)")
    database.close()
    watch = ["strace", "-y", "-qq", "-e", "trace=unlink,fsync,fdatasync", "-o", trace]
    shutil.copy(path, path + ".before")
    subprocess.run([*watch, sys.executable, "-c", CODE.format(path=path)], check=True)
    with open(trace) as file:
        after = file.read().partition('x.db-journal")')[2]
    synced = f"<{os.path.dirname(path)}>" in after
    shutil.copy(path + ".before", path)
    subprocess.run(
        [*watch, "-e", "inject=unlink:signal=KILL", sys.executable, "-c", CODE.format(path=path)], check=False
    )
    database = sqlite3.connect(path)
    rows = database.execute("select count(*) from t").fetchone()[0]
    database.close()
    said = "synced" if synced else "not synced"
    print(f"the directory is {said} after the deletion; with the journal kept there are {rows} rows")
    sys.exit(0 if synced or rows else 1)
