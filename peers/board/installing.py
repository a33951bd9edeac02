"""Install the stores of the board: Python libraries, adapters in Go, Rust and Java.

Everything is in the cache directory of the board. Python libraries are installed from the pinned versions of
`python/requirements.txt` into a directory of their own; they never become part of the environment of tornpage. The
adapters of another language are one program, built from a copy of their sources with the tools of that language.
Compiled programs are in directories named by the digest of their sources, so changed sources are built again.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

from tornpage.peers.board import places
from tornpage.peers.board.catalogue import Ecosystem, Row, pinned
from tornpage.peers.errors import PeerUnavailable

__all__ = ["install", "install_go_reproduction", "why_not_installed"]

_TIMEOUT_S = 1800.0
_TOOLS: Mapping[Ecosystem, tuple[tuple[str, str], ...]] = {
    "python": (),
    "go": (("go", "Go"),),
    "rust": (("cargo", "Rust"),),
    "java": (("java", "a JDK"), ("javac", "a JDK"), ("mvn", "Maven")),
}


def why_not_installed(row: Row) -> str:
    """Return why a row cannot run here, "" if it can."""
    match row.ecosystem:
        case "python":
            is_there = not row.package or _python_version(row.package) is not None
        case "go":
            is_there = places.go_program().is_file()
        case "rust":
            is_there = places.rust_program().is_file()
        case "java":
            if shutil.which("java") is None:
                return "no java on PATH; install a JDK"
            is_there = (places.java_directory() / "classes").is_dir()
    return "" if is_there else f"not installed; run `tornpage board install {row.name}`"


def _python_version(package: str) -> str | None:
    """Return the version of a library that an adapter would import, None if there is none."""
    wanted = _normal(package)
    for path in ([each] for each in (*sys.path, str(places.python_packages()))):
        for found in distributions(path=path):
            if _normal(found.metadata["Name"] or "") == wanted:
                return found.version
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def install(
    rows: Iterable[Row], *, offline: bool = False, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Install what these rows need; return the reason for each row that cannot be had.

    `offline` lets the package managers use their local caches only.
    """
    wanted = list(rows)
    refused: dict[str, str] = {}
    for ecosystem in dict.fromkeys(row.ecosystem for row in wanted):
        mine = [row for row in wanted if row.ecosystem == ecosystem]
        try:
            for tool, what in _TOOLS[ecosystem]:
                if shutil.which(tool, path=environment.get("PATH")) is None:
                    raise PeerUnavailable(f"no {tool} on PATH; install {what}")
            if ecosystem == "python":
                refused |= _install_python(mine, offline, environment)
            else:
                _INSTALLERS[ecosystem](offline, environment)
        except PeerUnavailable as error:
            refused |= {row.name: str(error) for row in mine}
        except OSError as error:
            where = places.cache_directory(environment)
            reason = f"cannot write {where}: {error.strerror or error}; set XDG_CACHE_HOME"
            refused |= {row.name: reason for row in mine}
    return refused


def _install_python(rows: Sequence[Row], offline: bool, environment: Mapping[str, str]) -> dict[str, str]:
    """Install the pinned libraries of rows; if that fails as a whole, each by itself."""
    target = places.python_packages()
    target.parent.mkdir(parents=True, exist_ok=True)
    packages = {row.package for row in rows if row.package}
    missing = sorted(each for each in packages if _python_version(each) != pinned("python", each))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    pip += ["--no-warn-conflicts", "--target", str(target), *(["--no-index"] if offline else [])]
    requirements = [f"{each}=={pinned('python', each)}" for each in missing]
    if not requirements or _run([*pip, *requirements], target.parent, environment)[0] == 0:
        return {}
    failed: dict[str, str] = {}
    for package, requirement in zip(missing, requirements, strict=True):
        code, printed = _run([*pip, requirement], target.parent, environment)
        if code:
            reason = _first_error(printed)
            failed |= {row.name: f"pip: {reason}" for row in rows if row.package == package}
    return failed


def _install_go(offline: bool, environment: Mapping[str, str]) -> None:
    """Build the Go adapters."""

    def build(work: Path) -> None:
        _go_build(work, "board", offline, environment)

    _built("go", places.go_program().parent, build, made="bin")


def install_go_reproduction(source: Path, *, environment: Mapping[str, str] = os.environ) -> Path:
    """Build a reproduction in Go and return the program. Raises PeerUnavailable."""
    target = places.go_reproduction(source)
    if shutil.which("go", path=environment.get("PATH")) is None:
        raise PeerUnavailable("no go on PATH; install Go")

    def build(work: Path) -> None:
        for adapter in work.glob("*.go"):
            adapter.unlink()
        shutil.copy(source, work / "main.go")
        _go_build(work, source.stem, offline=False, environment=environment)

    _built("go", target.parent, build, made="bin")
    return target


def _go_build(work: Path, name: str, offline: bool, environment: Mapping[str, str]) -> None:
    settings = {**environment, "GOFLAGS": "-mod=mod -buildvcs=false", **({"GOPROXY": "off"} if offline else {})}
    (work / "bin").mkdir()
    _require(_run(["go", "build", "-o", f"bin/{name}", "."], work, settings), "go build")


def _install_rust(offline: bool, environment: Mapping[str, str]) -> None:
    """Build the Rust adapters."""

    def build(work: Path) -> None:
        settings = {**environment, "CARGO_TARGET_DIR": str(work / "target")}
        command = ["cargo", "build", "--quiet", "--release", *(["--offline"] if offline else [])]
        _require(_run(command, work, settings), "cargo build")
        (work / "bin").mkdir()
        shutil.copy(work / "target" / "release" / "board", work / "bin")

    _built("rust", places.rust_program().parent, build, made="bin")


def _install_java(offline: bool, environment: Mapping[str, str]) -> None:
    """Resolve the jars of both versions of H2 and compile the adapters."""

    def build(work: Path) -> None:
        (work / "out").mkdir()
        for directory, version in (("lib", "h2"), ("later", "h2.later")):
            command = ["mvn", "-q", "-B", *(["-o"] if offline else []), f"-Dh2.version={pinned('java', version)}"]
            command += ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory=out/{directory}"]
            _require(_run(command, work, environment), "mvn")
        sources = [str(path) for path in sorted(work.glob("*.java"))]
        command = ["javac", "-nowarn", "-encoding", "UTF-8", "-d", "out/classes", "-cp", "out/lib/*", *sources]
        _require(_run(command, work, environment), "javac")

    _built("java", places.java_directory(), build, made="out")


_INSTALLERS: Mapping[str, Callable[[bool, Mapping[str, str]], None]] = {
    "go": _install_go,
    "rust": _install_rust,
    "java": _install_java,
}


def _built(ecosystem: str, target: Path, build: Callable[[Path], None], *, made: str) -> None:
    """Build a copy of the sources of an ecosystem and move its directory `made` to `target`."""
    if target.is_dir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"building-{ecosystem}-", dir=target.parent) as work:
        copy = Path(shutil.copytree(places.SOURCES / ecosystem, Path(work) / "sources"))
        build(copy)
        try:
            (copy / made).rename(target)
        except OSError:
            if not target.is_dir():  # another process may have been faster
                raise


def _run(command: Sequence[str], work: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a program to its end; return its exit code and what it printed."""
    try:
        done = subprocess.run(
            command, cwd=work, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"error: no end within {_TIMEOUT_S:g} s"
    return done.returncode, done.stdout


def _require(done: tuple[int, str], tool: str) -> None:
    """Raise PeerUnavailable with the first error of a tool that failed."""
    code, printed = done
    if code:
        raise PeerUnavailable(f"{tool}: {_first_error(printed)}")


def _first_error(printed: str) -> str:
    """Return the first error that a tool printed, shortened, without addresses."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    line = next((each for each in lines if "error" in each.lower()), lines[-1] if lines else "it printed no error")
    line = re.sub(r"\(?\S+://\S+", "…", line)
    return line if len(line) <= 160 else line[:159] + "…"
