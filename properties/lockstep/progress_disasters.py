"""What befalls a saved progress file behind the store's back: it is lost, or says nothing any more."""

from typing import TYPE_CHECKING

from model.operations import HarmProgress, ProgressHarm
from properties.contract import GuaranteeBroken
from properties.disk.disk import Image
from properties.judge.progress_ledger import said_by, torn_in
from properties.program.log_places import log_files

if TYPE_CHECKING:
    from properties.lockstep.trial import Trial

__all__ = ["harm_progress"]


def harm_progress(trial: "Trial", operation: HarmProgress) -> None:
    """Close, harm the file, and open: the backup counts, or nothing is known, and that is named (contract 7, 13).

    One that is lost without having had a backup is not known to have been there.
    """
    if trial.log.poisoned:
        return
    trial.files.mend()
    trial.close()
    path, harm = trial.consumer_file, operation.harm
    image = trial.durable(trial.files)
    if path not in image.files:
        trial.open()
        return
    harmed = _harmed(image, path, harm)
    if harm == "stale" and said_by(harmed.files, (path,)) == said_by(image.files, (path,)):
        trial.open()
        return
    versions = {each: frozenset((said,)) for each, said in said_by(harmed.files, trial.versions.paths).items()}
    trial.torn_files = torn_in(harmed.files, trial.versions.paths)
    files = trial.new_disk(harmed)
    found = trial.recover(files, trial.legal_between(trial.log, trial.log, kill=True), versions)
    named = any(each.file == path and each.code.startswith("config_file_") for each in found.store.findings)
    if harm != "stale" and not named and (path in harmed.files or f"{path}.bak" in harmed.files):
        raise GuaranteeBroken(7, f"a progress file that is {harm} is not named")
    trial.go_on_with(found, files)
    trial.happened(f"progress_file_{harm}")


def _harmed(image: Image, path: str, harm: ProgressHarm) -> Image:
    """Return an image whose state file is harmed, and its backup too for `both`."""
    left = dict(image.files)
    if harm == "stale":
        left[path] = left.get(f"{path}.bak", left[path])
    elif harm == "misdirected":
        logs = log_files(image.files)
        left[path] = image.files[logs[0]][: len(left[path])] if logs else b""
    if harm in ("stale", "misdirected"):
        return Image(image.directories, left)
    for each in (path, f"{path}.bak")[: 2 if harm == "both" else 1]:
        content = left.pop(each, None)
        if content is not None and harm != "lost":
            kept = len(content) // 2 if harm == "torn" else 0
            left[each] = content[:kept].ljust(len(content) if kept else 0, b"\0")
    return Image(image.directories, left)
