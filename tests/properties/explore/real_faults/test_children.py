"""Test that the report of a forked process survives it, and that its end is known."""

import os
import signal
from multiprocessing.pool import Pool

from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.explore.real_faults.children import Page, Stored, in_child
from tornpage.properties.explore.real_faults.mounts import Unavailable


def die_by(number: int) -> tuple[str | None, str, list[Stored], int]:
    """Return the end of a process that sent itself a signal in its second put, and its report."""
    page = Page()

    def work(page: Page) -> None:
        page.begin("put 1", putting=1)
        page.store(Stored(1, 0, 100, promised=True))
        page.begin("put 2", putting=2)
        os.kill(os.getpid(), number)

    return in_child(page, work).signal, page.verb, page.stored, page.putting


def raised_by(kind: str) -> str:
    """Return the error that the parent raises when a child ended like this."""

    def work(page: Page) -> None:
        page.begin("get")
        match kind:
            case "broken":
                raise GuaranteeBroken(2, "gone", "one", "none")
            case "unavailable":
                raise Unavailable("no such thing")
            case "harness":
                raise HarnessError("our own")
            case "raising store":
                with page.asking("put 7"):
                    raise OSError(5, "Input/output error")
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hangs":
                os.kill(os.getpid(), signal.SIGALRM)
            case _:
                raise ZeroDivisionError(kind)

    try:
        in_child(Page(), work)
    except (GuaranteeBroken, Unavailable, HarnessError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def test_a_death_by_signal_is_named_and_what_was_said_is_kept(fresh_process: Pool) -> None:
    told = fresh_process.apply(die_by, (int(signal.SIGBUS),))
    assert told == ("SIGBUS", "put 2", [Stored(1, 0, 100, promised=True)], 2)


def test_the_parent_raises_what_the_child_found(fresh_process: Pool) -> None:
    def raised(kind: str) -> str:
        return fresh_process.apply(raised_by, (kind,))

    assert raised("broken") == "GuaranteeBroken: contract 2: gone (expected one; found none)"
    assert raised("unavailable") == "Unavailable: no such thing"
    assert raised("harness") == "HarnessError: our own"
    assert raised("other") == "HarnessError: ZeroDivisionError: other (in get)"
    assert raised("raising store").startswith("GuaranteeBroken: contract 8: put 7 raises OSError")
    assert raised("killed").startswith("HarnessError: another process killed the process in get")
    assert raised("hangs").startswith("GuaranteeBroken: contract 16: get did not return")


def test_a_page_drops_what_a_recovery_cut_and_knows_what_was_promised() -> None:
    page = Page()
    for number in range(1, 5):
        page.begin(f"put {number}", putting=number)
        page.store(Stored(number, number * 10, number * 10 + 10, promised=number != 3))
    assert [stored.number for stored in page.promised] == [1, 2, 4]
    page.tell(promised_end=30)
    assert [stored.number for stored in page.promised] == [1, 2]
    page.forget_after(20)
    assert [stored.number for stored in page.stored] == [1]
    assert page.putting == 0
    assert page.facts == {"promised_end": 30}
