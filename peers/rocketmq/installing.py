"""Install a RocketMQ release: resolve its jars with Maven and compile our driver.

Both are kept in the cache directory, which is `$XDG_CACHE_HOME/tornpage`, or `~/.cache/tornpage`. The jars of a release
are in `peers/rocketmq/VERSION/lib`. Compiled drivers are beside it in `driver-DIGEST`. The digest is that of the
driver's sources, so a newer tornpage compiles again and resolves nothing. The library of consumers has jars and a
driver of its own, in `client-lib` and `client-driver-DIGEST`. So has DLedger, in `dledger-lib` and
`dledger-driver-DIGEST`.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tornpage.peers.errors import PeerUnavailable

__all__ = [
    "CLIENT",
    "COMPONENTS",
    "DLEDGER",
    "REFERENCE",
    "STORE",
    "VERSIONS",
    "Component",
    "Release",
    "cache_directory",
    "install",
    "installed",
    "is_installed",
    "require_version",
]

VERSIONS = (
    "4.3.2", "4.4.0", "4.5.2", "4.6.1", "4.7.1", "4.8.0", "4.9.0", "4.9.3", "4.9.4", "4.9.8",
    "5.0.0", "5.1.4", "5.2.0", "5.3.1", "5.3.2", "5.3.3", "5.4.0",
)  # fmt: skip
"""The releases that the driver compiles against and runs with, oldest first."""

REFERENCE = "4.9.3"
"""The release whose files and answers our store has."""

_SOURCES = Path(__file__).resolve().parent / "java"
"""The sources of the store's driver, which compile with each release."""

_MAVEN_TIMEOUT_S = 900.0
_COMPILE_TIMEOUT_S = 600.0
_MISSING = re.compile(r"Could not find artifact|was not found in|Failure to find")
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tornpage</groupId><artifactId>peer</artifactId><version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = """    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
    </dependency>"""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of RocketMQ with jars of its own, and how our driver is compiled and run."""

    name: str
    """The name in `tornpage peer install`."""
    artifact: str
    """The artifact of Maven; what it needs is resolved too."""
    versions: tuple[str, ...]
    lib: str
    driver: str
    main: str
    folders: tuple[Path, ...]
    """The folders of the driver's sources."""
    reference_folders: tuple[Path, ...] = ()
    """More folders for the reference release."""
    shared: tuple[Path, ...] = ()
    """Sources in other folders."""
    options: tuple[str, ...] = ()
    """Options of the `java` that runs the driver."""
    additions: tuple[tuple[str, str, str], ...] = ()
    """Group, artifact and version of jars that the artifact needs and does not name."""

    def sources(self, version: str) -> list[Path]:
        """Return the sources of the driver for a release."""
        folders = [*self.folders, *(self.reference_folders if version == REFERENCE else ())]
        return [*(source for folder in folders for source in sorted(folder.glob("*.java"))), *self.shared]


STORE = Component(
    "rocketmq", "rocketmq-store", VERSIONS, "lib", "driver", "peer.Driver", (_SOURCES,), (_SOURCES / "replication",)
)
"""The store. Only the sources of the reference release use its replication."""

CLIENT = Component(
    name="rocketmq-client",
    artifact="rocketmq-client",
    versions=(REFERENCE,),
    lib="client-lib",
    driver="client-driver",
    main="peer.ConsumerDriver",
    folders=(_SOURCES / "consumer",),
    shared=tuple(_SOURCES / name for name in ("Json.java", "Reflect.java", "Requests.java")),
    options=("-Dfile.encoding=UTF-8",),  # the hash of the ring is taken of bytes in the charset of the platform
)
"""The library of consumers and producers."""

DLEDGER = Component(
    name="rocketmq-dledger",
    artifact="rocketmq-store",
    versions=(REFERENCE,),
    lib="dledger-lib",
    driver="dledger-driver",
    main="peer.RaftNode",
    folders=(_SOURCES / "dledger",),
    shared=tuple(_SOURCES / name for name in ("Json.java", "Reflect.java", "Requests.java")),
    additions=(("org.slf4j", "slf4j-api", "1.7.36"),),  # the store leaves out the log library of DLedger
)
"""The store with DLedger 0.2.3, whose jar it needs."""

COMPONENTS = (STORE, CLIENT, DLEDGER)
"""What `tornpage peer install` installs."""


@dataclass(frozen=True, slots=True)
class Release:
    """An installed release: its jars, our compiled driver, and the `java` that runs them."""

    version: str
    jars: Path
    driver: Path
    java: str
    component: Component = STORE

    @property
    def classpath(self) -> str:
        """The class path of the driver."""
        return f"{self.driver}{os.pathsep}{self.jars}/*"


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory in which releases are kept."""
    home = environment.get("XDG_CACHE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path(environment.get("HOME") or Path.home()) / ".cache"
    return base / "tornpage" / "peers" / "rocketmq"


def require_version(version: str, component: Component = STORE) -> None:
    """Raise PeerUnavailable for a version that the driver is not tested with."""
    if version not in component.versions:
        known = ", ".join(component.versions)
        raise PeerUnavailable(f"{_title(component)} {version!r} is not a known version; give one of {known}")


def is_installed(version: str, component: Component = STORE, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the jars of a release are in the cache directory."""
    return (cache_directory(environment) / version / component.lib).is_dir()


def installed(version: str, component: Component = STORE, environment: Mapping[str, str] = os.environ) -> Release:
    """Return an installed release; compile the driver if its sources changed.

    Raises PeerUnavailable.
    """
    require_version(version, component)
    java = _program("java", "a Java runtime", environment)
    if not is_installed(version, component, environment):
        how = f"run `tornpage peer install {component.name} {version}` first"
        raise PeerUnavailable(f"{_title(component)} {version} is not installed; {how}")
    home = cache_directory(environment) / version
    return Release(version, home / component.lib, _compiled(version, component, home, environment), java, component)


def install(
    version: str,
    component: Component = STORE,
    *,
    offline: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> Release:
    """Resolve the jars of a release with Maven unless they are there, and compile the driver.

    `offline` takes jars from Maven's local repository only. Raises PeerUnavailable.
    """
    require_version(version, component)
    _program("java", "a Java runtime", environment)
    _program("javac", "a JDK", environment)
    home = cache_directory(environment) / version
    if not is_installed(version, component, environment):
        maven = _program("mvn", "Maven", environment)
        try:
            home.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="resolving-", dir=home) as work:
                _resolve(Path(work), version, component, maven, offline=offline, environment=environment)
                _take(Path(work) / "lib", home / component.lib)
        except OSError as error:
            raise PeerUnavailable(f"cannot write {home}: {error.strerror or error}; set XDG_CACHE_HOME") from error
    return installed(version, component, environment)


def _title(component: Component) -> str:
    """Return the name of a component in messages."""
    return "RocketMQ" if component is STORE else component.name


def _resolve(
    work: Path, version: str, component: Component, maven: str, *, offline: bool, environment: Mapping[str, str]
) -> None:
    """Copy the jars of a release and of everything that it needs into `work/lib`."""
    needed = (("org.apache.rocketmq", component.artifact, version), *component.additions)
    dependencies = "\n".join(_DEPENDENCY.format(*each) for each in needed)
    (work / "pom.xml").write_text(_POM.format(dependencies=dependencies), encoding="utf-8")
    command = [maven, "-q", "-B", *(["-o"] if offline else [])]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=lib"]
    code, printed = _run(command, work, _MAVEN_TIMEOUT_S, environment)
    if code == 0 and any((work / "lib").glob(f"{component.artifact}-{version}.jar")):
        return
    if offline:
        reason = "Maven's local repository lacks a part of it; run without --offline once"
    elif _MISSING.search(printed):
        reason = "no repository of Maven has it; check Maven's settings"
    else:
        reason = f"Maven cannot reach a repository ({_first_error(printed)}); check network and Maven's settings"
    raise PeerUnavailable(f"cannot install {_title(component)} {version}: {reason}")


def _first_error(printed: str) -> str:
    """Return the first error that Maven printed, shortened, without addresses."""
    lines = (line.removeprefix("[ERROR]").strip() for line in printed.splitlines() if "ERROR" in line)
    line = re.sub(r"\(?\S+://\S+", "…", next(filter(None, lines), "it printed no error"))
    return line if len(line) <= 160 else line[:159] + "…"


def _compiled(version: str, component: Component, home: Path, environment: Mapping[str, str]) -> Path:
    """Return the directory of the compiled driver."""
    sources = component.sources(version)
    digest = sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    target = home / f"{component.driver}-{digest}"
    if target.is_dir():
        return target
    javac = _program("javac", "a JDK", environment)
    try:
        with tempfile.TemporaryDirectory(prefix="compiling-", dir=home) as work:
            out = Path(work) / "classes"
            out.mkdir()
            command = [javac, "-nowarn", "-encoding", "UTF-8", "-d", str(out), "-cp", f"{home / component.lib}/*"]
            code, printed = _run([*command, *map(str, sources)], Path(work), _COMPILE_TIMEOUT_S, environment)
            if code:
                lines = (line.removeprefix("[ERROR] ") for line in printed.splitlines() if "error" in line.lower())
                error = next(lines, f"exit code {code}").rpartition("/")[2]
                raise PeerUnavailable(f"the driver does not compile with {javac}: {error}")
            _take(out, target)
    except OSError as error:
        raise PeerUnavailable(f"cannot write {home}: {error.strerror or error}; set XDG_CACHE_HOME") from error
    return target


def _take(made: Path, target: Path) -> None:
    """Rename a finished directory to its place, unless another process was faster."""
    try:
        made.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _run(command: Sequence[str], work: Path, timeout_s: float, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a program to its end; return its exit code and what it printed."""
    try:
        done = subprocess.run(
            command, cwd=work, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"[ERROR] no end within {timeout_s:g} s"
    return done.returncode, done.stdout


def _program(name: str, what: str, environment: Mapping[str, str]) -> str:
    """Return the path of a program.

    Programs of Java are looked for below JAVA_HOME first, then on PATH. Raises PeerUnavailable.
    """
    home = environment.get("JAVA_HOME", "")
    found = shutil.which(name, path=os.path.join(home, "bin")) if home and name != "mvn" else None
    found = found or shutil.which(name, path=environment.get("PATH", ""))
    if found is None:
        raise PeerUnavailable(f"no {name} on PATH or in JAVA_HOME; install {what}")
    return found
