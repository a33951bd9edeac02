"""Test foreign stores: right ones hold however they keep files, and each mistake is named."""

from dataclasses import replace
from pathlib import Path

import pytest

from tornpage.model.operations import Close, Crash, Flush, Get, GetMessage, Open, Operation, Put, QueryKey
from tornpage.properties.campaign.replay import Failure, Shrunk, Tries, replay, shrink
from tornpage.properties.contract import GuaranteeBroken, HarnessError, Verdict
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.foreign.campaign import TargetPlan, run_target_campaign
from tornpage.properties.foreign.process import Hung
from tornpage.properties.foreign.protocol import BadHandshake, TargetUnusable
from tornpage.properties.foreign.shapes.registry import MESSAGES, SHAPES
from tornpage.properties.foreign.spec import BadSpec, PythonSpec, read_spec
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.foreign.trial import TargetTrial
from tornpage.properties.program.case import Case, Settings

STORES = Path(__file__).parents[3] / "support" / "properties" / "broken_stores.py"
OWN = "tornpage.properties.foreign.own:open_store"
watched = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")


def settings(name: str, **others: object) -> Settings:
    return Settings(target=f"{STORES}:{name}", **others)  # type: ignore[arg-type]


def run(found: Settings, *operations: Operation) -> Failure | None:
    with choose_tracker("auto") as tracker:
        return replay(Case(found, operations), tracker=tracker)


KEYED = Put(body_bytes=8, properties="KEYS\x01k1 k2")
LIFE: tuple[Operation, ...] = (
    Put(body_bytes=300),
    Put(topic="U", body_bytes=5000),
    Get(0),
    GetMessage(0, 0),
    GetMessage(1, 5),
    KEYED,
    QueryKey(1),
    Crash(back=2, others="kept"),
    Put(fill=1),
    Crash(back=3),
    Put(fill=2),
    Crash(kill=True, back=2),
    Put(fill=3),
    Flush(),
    Crash(survived={}),
    Close(),
    Open(),
    Put(fill=4),
    Crash(kill=True),
    Close(),
    Crash(),
    Crash(back=4),
)
"""One operation of each kind."""


# ---- right stores ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@watched
@pytest.mark.parametrize("name", ["Mended", "Rewrites", "writes_synchronously"])
def test_a_right_store_holds(name: str) -> None:
    assert run(settings(name), *LIFE) is None


@watched
@pytest.mark.parametrize("way", ["open_store", pytest.param("open_store_async", marks=pytest.mark.deep)])
def test_our_own_store_holds_as_a_target(way: str) -> None:
    assert run(Settings(target=f"tornpage.properties.foreign.own:{way}"), *LIFE[:16]) is None


@pytest.mark.parametrize("package", ["properties.targets", "properties.explore.foreign", "properties.foreign"])
@pytest.mark.parametrize("module", ["memory", "own"])
def test_targets_named_by_old_tokens_are_found(package: str, module: str) -> None:
    assert read_spec(f"{package}.{module}:open_store") == read_spec(f"tornpage.properties.foreign.{module}:open_store")


def test_file_of_a_target_imports_a_module_beside_it(tmp_path: Path) -> None:
    """Symptom: a target file in another directory could not import the library beside it."""
    (tmp_path / "library_beside.py").write_text("def open_store(directory): ...\n")
    (tmp_path / "adapter.py").write_text("from library_beside import open_store\n")
    assert isinstance(read_spec(f"{tmp_path}/adapter.py:open_store"), PythonSpec)


def test_the_reference_store_holds_what_it_promises_without_a_disk() -> None:
    memory = "tornpage.properties.foreign.memory:open_store"
    assert run(Settings(target=memory), *LIFE[:7], Flush(), Crash(kill=True), *LIFE[:3], Close(), Open(), KEYED) is None


@watched
def test_of_links_no_power_loss_is_made() -> None:
    trial = TargetTrial(settings("Linked"))
    assert trial.why_no_power_loss == ""
    trial.run(Put())
    assert trial.why_no_power_loss.endswith("is a symbolic link")
    with pytest.raises(TargetUnusable, match=r"no power loss of .*Linked can be made here: .* is a symbolic link"):
        trial.run(Crash())
    trial.run(Crash(kill=True, back=3))
    assert trial.performed[-1] == Crash(kill=True)


@watched
def test_of_a_directory_that_somebody_else_writes_to_no_power_loss_is_made() -> None:
    trial = TargetTrial(settings("Writes"))
    assert trial.why_no_power_loss == ""
    (trial._workplace.top / "disk1" / "other").write_bytes(b"x")
    trial.run(Put())
    assert trial.why_no_power_loss.startswith("a process that is neither the store's nor a child of it")


def test_a_trial_leaves_no_process_and_no_directory() -> None:
    trial = TargetTrial(settings("Mended"))
    root, process = trial.files.root, trial.store.process  # type: ignore[union-attr]
    assert root.is_dir()
    trial.end()
    assert not root.exists()
    assert not Path(f"/proc/{process._id}").exists()


# ---- wrong stores ----------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[int, str, tuple[Operation, ...]]] = {
    "CountsAnew": (4, "another number than the next", (Put(), Close(), Open(), Put())),
    "ForgetsTheLast": (2, "promised to survive", (Put(), Crash(kill=True))),
    "Swaps": (17, "leads to another message", (Put(body_bytes=3), Get())),
    "FindsTooMuch": (5, "returns other messages", (KEYED, Put(), QueryKey())),
    "SameOffset": (8, "an offset that another message has", (Put(), Put())),
    "Refuses": (8, "answers flush with an error", (Flush(),)),
    "Dies": (8, "is killed by SIGSEGV instead of answering flush", (Flush(),)),
    "OddAnswer": (8, "answers get with an error", (Put(), Get())),
    "WillNotOpenAgain": (7, "does not open: RuntimeError: who was here before?", (Crash(kill=True),)),
    "ComesBack": (3, "comes back that an earlier recovery had cut", (Put(), Crash(kill=True), Crash(kill=True))),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_store_is_broken_and_says_how(name: str) -> None:
    contract, sentence, operations = WRONG[name]
    failure = run(settings(name), *operations)
    assert failure is not None
    assert failure.broken.contract == contract
    assert sentence in failure.broken.sentence
    if name == "Dies":
        assert failure.broken.found == "on standard error: about to die"


def test_no_answer_in_time_breaks_liveness() -> None:
    failure = run(settings("Hangs", answer_seconds=0.2), Flush())
    assert failure is not None
    assert (failure.broken.contract, failure.broken.sentence) == (16, "the store does not answer flush within 0.2 s")


@watched
@pytest.mark.parametrize(
    ("bug", "operations"),
    [
        ("lying-flush", (Put(), Crash())),
        ("directory-not-synced", (Put(), Crash())),
        ("early-acknowledgement", (Put(body_bytes=900), Crash())),
    ],
)
def test_a_planted_bug_of_ours_is_caught_on_this_road_too(bug: str, operations: tuple[Operation, ...]) -> None:
    assert run(Settings(target=OWN), *operations) is None
    failure = run(Settings(target=OWN, bug=bug), *operations)
    assert failure is not None
    assert failure.broken.contract == 2


@pytest.mark.slow
@watched
def test_a_failure_is_made_small() -> None:
    large = (Put(body_bytes=40), Flush(), Get(0), Put(topic="U", body_bytes=300), Crash(), Put())
    with choose_tracker("auto") as tracker:
        failure = replay(Case(settings("Unsynced"), large), tracker=tracker)
        assert failure is not None
        small = shrink(failure, tracker=tracker)
    assert small.one_minimal
    assert [type(operation) for operation in small.case.operations] == [Put, Crash]
    assert small.losses == 1
    assert Case.from_token(small.case.token()) == small.case


# ---- campaigns -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@watched
def test_a_campaign_on_a_right_store_holds_and_has_lost_something() -> None:
    with choose_tracker("auto") as tracker:
        found = run_target_campaign(TargetPlan(settings("Mended"), seed=1, states=24), tracker=tracker)
    assert found.verdict is Verdict.HOLDS
    assert found.tally.effective["power"]
    assert found.tally.effective["lost_page"]


@watched
def test_equal_seeds_give_equal_campaigns() -> None:
    plan = TargetPlan(settings("Mended"), seed=1, states=5)
    with choose_tracker("auto") as tracker:
        first, again = (run_target_campaign(plan, tracker=tracker) for _ in range(2))
    assert first.tally == again.tally
    assert first.result_hash == again.result_hash


def test_a_campaign_that_catches_no_canary_is_vacuous(monkeypatch: pytest.MonkeyPatch) -> None:
    tame = replace(SHAPES[MESSAGES], canary=f"{STORES}:Mended")
    monkeypatch.setattr("tornpage.properties.explore.foreign.campaign.SHAPES", {MESSAGES: tame})
    with choose_tracker("auto") as tracker:
        found = run_target_campaign(TargetPlan(settings("Mended"), states=1), tracker=tracker)
    assert found.verdict is Verdict.VACUOUS
    assert (found.canary, found.without_canary) == ("", [0])


@pytest.mark.slow
def test_a_failure_that_does_not_show_again_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tornpage.properties.campaign.engine.replay", lambda case, tracker: None)
    never = Tries(None, 0, 5)
    module = "tornpage.properties.explore.foreign.campaign"
    monkeypatch.setattr(f"{module}.replay_several", lambda case, tries, tracker: never)
    with choose_tracker("auto") as tracker, pytest.raises(HarnessError, match="does not replay"):
        run_target_campaign(TargetPlan(settings("CountsAnew"), states=50), tracker=tracker)


# ---- untestable targets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nothing", "is no target: give cmd:"),
        ("no.such.module:thing", "there is no module 'no.such.module' here"),
        (f"{STORES}:Absent", "has no 'Absent'"),
        (f"{STORES.parent}/absent.py:Store", "there is no file"),
        ("os:sep", "must be callable with a directory"),
        ("cmd:", "has no command"),
        ("cmd:true", "the command does not name the store's directory"),
        ("cmd:./absent {dir}", "the command ./absent does not exist"),
        ("cmd:'true {dir}", "the command cannot be read: No closing quotation"),
    ],
)
def test_a_bad_target_is_named(target: str, said: str) -> None:
    with pytest.raises(BadSpec) as raised:
        TargetTrial(Settings(target=target))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("true {dir}", "the store exits with 0 instead of answering hello"),
        ("echo hello from {dir}", "the answer to hello is no JSON object: 'hello from"),
        ("tee {dir}/x", 'the handshake has no "tornpage"'),
        ("cat {dir}/nothing", "No such file or directory"),
    ],
)
def test_a_command_that_is_no_store_is_named(command: str, said: str) -> None:
    with pytest.raises(TargetUnusable) as raised:
        TargetTrial(Settings(target=f"cmd:{command}"))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_command_that_says_nothing_is_waited_for_no_longer_than_told() -> None:
    with pytest.raises(Hung, match=r"does not answer hello within 0\.2 s"):
        TargetTrial(Settings(target="cmd:sh -c 'sleep 60; : {dir}'", answer_seconds=0.2))


def test_a_promise_that_nobody_knows_is_named_with_the_nearest() -> None:
    with pytest.raises(BadHandshake, match="promises 'durabel', which is not a known promise; did you mean 'durable'"):
        TargetTrial(settings("PromisesTheMoon"))


def test_a_bug_is_planted_in_our_own_store_alone() -> None:
    with pytest.raises(BadSpec, match="only in tornpage's own store"):
        TargetTrial(settings("Mended", bug="lying-flush"))


def test_what_breaks_ends_the_process() -> None:
    trial = TargetTrial(settings("Refuses"))
    process = trial.store.process
    with pytest.raises(GuaranteeBroken):
        trial.run(Flush())
    assert not Path(f"/proc/{process._id}").exists()


@pytest.mark.slow
def test_an_interrupt_while_a_failure_is_made_small_ends_the_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the search ended: the campaign continued to the end of its time."""

    def shrink(failure: Failure, **_: object) -> Shrunk:
        return Shrunk(failure.case, failure.broken, ended="interrupt")

    monkeypatch.setattr("tornpage.properties.campaign.engine.shrink", shrink)
    with choose_tracker("auto") as tracker:
        found = run_target_campaign(TargetPlan(settings("CountsAnew"), states=50), tracker=tracker)
    assert found.interrupted
    assert len(found.found) == 1
