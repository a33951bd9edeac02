"""Open a LevelDB whose first MANIFEST has zeros for its content.

The first open writes MANIFEST-000001 without a sync and renames a synced file to CURRENT, which names that manifest. A
power loss may keep CURRENT and lose the manifest's content. Ends with 1 if the database does not open again.
"""

import os
import shutil
import subprocess
import sys
import tempfile

import plyvel

with tempfile.TemporaryDirectory() as work:
    store, trace = os.path.realpath(os.path.join(work, "store")), os.path.join(work, "trace")
    seen = ""
    if shutil.which("strace"):
        code = f"import plyvel, os; plyvel.DB({store!r}, create_if_missing=True); os.kill(os.getpid(), 9)"
        watch = ["strace", "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync,rename", "-o", trace]
        subprocess.run([*watch, sys.executable, "-c", code], check=False)
        with open(trace) as file:
            before = file.read().partition("CURRENT")[0]
        seen = (
            "" if "sync" in before and "MANIFEST-000001>" in before else "no sync of MANIFEST-000001 before CURRENT; "
        )
        shutil.rmtree(store)
    plyvel.DB(store, create_if_missing=True).close()
    for name in os.listdir(store):
        if name.startswith("MANIFEST"):
            path = os.path.join(store, name)
            size = os.path.getsize(path)
            os.truncate(path, 0)
            os.truncate(path, size)
    try:
        plyvel.DB(store).close()
    except plyvel.Error as error:
        print(f"{seen}a manifest of zeros: {error}")
        sys.exit(1)
    print("the database opens")
