"""Test the installation of a RocketMQ release.

Scripts stand in for Java and Maven.
"""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.peer import command
from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq import installing
from tornpage.peers.rocketmq.installing import CLIENT, REFERENCE, VERSIONS, cache_directory, install, installed

VERSION = REFERENCE
MAVEN = f'mkdir -p lib; : > lib/rocketmq-store-{VERSION}.jar; echo "$@" >> "$SEEN"'
JAVAC = 'while [ "$1" != -d ]; do shift; done; : > "$2/Driver.class"; echo compiled >> "$SEEN"'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of the only programs on PATH.

    The cache directory is empty.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mkdir", "sh"):
        (programs / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return programs


def have(programs: Path, **scripts: str) -> None:
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(command, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def refusal(*arguments: str) -> str:
    done = run("install", "rocketmq", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    return done.stderr.splitlines()[-1]


def test_a_release_is_resolved_and_compiled_once(machine: Path, tmp_path: Path) -> None:
    have(machine, java="", javac=JAVAC, mvn=MAVEN)
    release = install(VERSION)
    assert [path.name for path in release.jars.iterdir()] == [f"rocketmq-store-{VERSION}.jar"]
    assert [path.name for path in release.driver.iterdir()] == ["Driver.class"]
    assert install(VERSION) == installed(VERSION) == release
    seen = (tmp_path / "seen").read_text().splitlines()
    assert len(seen) == 2
    assert "dependency:copy-dependencies" in seen[0]
    assert sorted(path.name for path in release.jars.parent.iterdir()) == sorted(["lib", release.driver.name])


def test_the_list_says_what_is_installed(machine: Path) -> None:
    have(machine, java="", javac=JAVAC, mvn=MAVEN)
    assert json.loads(run("list", "--json").stdout)["figures"] == {"peers": len(VERSIONS) + 2, "installed": 0}
    assert f"rocketmq:{VERSION} is installed: 1 jars" in run("install", "rocketmq", VERSION).stdout
    assert f"installed in {cache_directory()}" in run("list").stdout


def test_the_library_of_consumers_is_installed_on_its_own(machine: Path) -> None:
    jar = f"rocketmq-client-{VERSION}.jar"
    have(machine, java="", javac=JAVAC, mvn=f"mkdir -p lib; : > lib/{jar}")
    assert f"rocketmq-client:{VERSION} is installed: 1 jars" in run("install", "rocketmq-client", VERSION).stdout
    client = installed(VERSION, CLIENT)
    assert [path.name for path in client.jars.iterdir()] == [jar]
    assert client.component.main == "peer.ConsumerDriver"
    with pytest.raises(PeerUnavailable, match=f"RocketMQ {VERSION} is not installed"):
        installed(VERSION)
    done = run("install", "rocketmq-client", "5.4.0")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "rocketmq-client '5.4.0' is not a known version; give one of 4.9.3" in done.stderr


def test_an_unknown_version_is_refused(machine: Path) -> None:
    assert refusal("9.9.9") == f"tornpage: RocketMQ '9.9.9' is not a known version; give one of {', '.join(VERSIONS)}"


def test_missing_programs_are_named(machine: Path) -> None:
    assert refusal(VERSION) == "tornpage: no java on PATH or in JAVA_HOME; install a Java runtime"
    have(machine, java="")
    assert refusal(VERSION) == "tornpage: no javac on PATH or in JAVA_HOME; install a JDK"
    have(machine, javac=JAVAC)
    assert refusal(VERSION) == "tornpage: no mvn on PATH or in JAVA_HOME; install Maven"


@pytest.mark.parametrize(
    ("arguments", "printed", "reason"),
    [
        ((), "[ERROR] Unknown host", "Maven cannot reach a repository (Unknown host); check network"),
        ((), "[ERROR] Could not find artifact org.apache", "no repository of Maven has it"),
        (("--offline",), "[ERROR] Cannot access", "run without --offline once"),
    ],
)
def test_a_failing_maven_is_one_line(machine: Path, arguments: tuple[str, ...], printed: str, reason: str) -> None:
    have(machine, java="", javac=JAVAC, mvn=f'echo "{printed}"; exit 1')
    line = refusal(VERSION, *arguments)
    assert line.startswith(f"tornpage: cannot install RocketMQ {VERSION}: ")
    assert reason in line
    with pytest.raises(PeerUnavailable, match="is not installed; run `tornpage peer install"):
        installed(VERSION)


def test_a_driver_that_does_not_compile_is_one_line(machine: Path) -> None:
    have(machine, java="", mvn=MAVEN, javac='echo "/a/Driver.java:1: error: no such class"; exit 1')
    assert refusal(VERSION).endswith(f"{machine}/javac: Driver.java:1: error: no such class")


def test_a_compiler_that_does_not_end_is_one_line(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "_COMPILE_TIMEOUT_S", 0.1)
    have(machine, java="", mvn=MAVEN, javac="exec /bin/sleep 60")
    assert refusal(VERSION).endswith(f"{machine}/javac: no end within 0.1 s")


def test_a_cache_directory_that_takes_nothing_is_one_line(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    have(machine, java="", javac=JAVAC, mvn=MAVEN)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert refusal(VERSION).endswith("set XDG_CACHE_HOME")


def test_a_relative_cache_directory_is_ignored() -> None:
    assert cache_directory({"XDG_CACHE_HOME": "here", "HOME": "/h"}) == Path("/h/.cache/tornpage/peers/rocketmq")
    assert cache_directory({**os.environ, "XDG_CACHE_HOME": "/c"}) == Path("/c/tornpage/peers/rocketmq")


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_driver_compiles_with_each_installed_release(version: str) -> None:
    """A source used classes of one release, and the driver compiled with no other."""
    try:
        release = installed(version)
    except PeerUnavailable as missing:
        if "does not compile" in str(missing):
            raise
        pytest.skip(str(missing))
    assert (release.driver / "peer" / "Driver.class").is_file()
    assert (release.driver / "peer" / "ReplicaNode.class").is_file() == (version == REFERENCE)
