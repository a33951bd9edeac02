"""`tornpage audit`."""

import click

from tornpage.cli import options
from tornpage.cli.document import emit, refuse
from tornpage.outcomes.auditing import ENGINES, Asked, audit_outcome, rebuild_outcome, repair_outcome
from tornpage.render.redacting import showing
from tornpage.render.store_page import audit_page
from tornpage.run.writing import new_page

__all__ = ["command"]


@click.command("audit")
@click.argument("stores", nargs=-1, required=True, type=click.Path(), metavar="STORE...")
@click.option(
    "--engine", type=click.Choice(ENGINES), default="auto", show_default=True, help="How to read and compare (below)."
)
@click.option("--master", default="local[2]", show_default=True, help="Spark master URL.")
@options.broker_config_option
@options.file_bytes_option
@options.release_option
@click.option("--work", type=click.Path(), default=None, help="Keep the rows of engine joins in this directory.")
@click.option("--resume", is_flag=True, help="Read again only files that changed since --work was written.")
@click.option("--overwrite", is_flag=True, help="Replace the rows of --work, or the file of --html.")
@click.option("--repair-to", type=click.Path(), default=None, metavar="DIR", help="Write a mended copy of STORE.")
@click.option("--plan", "only_plan", is_flag=True, help="Print the plan of --repair-to, and write nothing.")
@click.option(
    "--restore-quarantine", is_flag=True, help="With --repair-to: put back what the store set aside in quarantine/."
)
@click.option(
    "--log-file-bytes",
    metavar="BYTES",
    type=click.IntRange(1, 2**31 - 1),
    default=None,
    help="With --repair-to: write log files of this size.",
)
@click.option(
    "--rebuild",
    type=click.Choice(["queues", "index", "all"]),
    default=None,
    help="Rebuild this in the one STORE, from its sound log; the old files go to STORE/backup.N.",
)
@click.option("--html", type=click.Path(dir_okay=False), default=None, help="Also write a page about the one STORE.")
@options.redact_option
@options.json_option
def command(
    stores: tuple[str, ...],
    repair_to: str | None,
    only_plan: bool,
    restore_quarantine: bool,
    log_file_bytes: int | None,
    rebuild: str | None,
    html: str | None,
    redact: bool,
    as_json: bool,
    **asked: str | int | bool | None,
) -> None:
    """Check that log, queues and index of store directories agree.

    A store is changed by --rebuild only.

    \b
    auto    joins if a store has more than 2 GiB of log and queues, else plain up to 4 GiB in all, else tasks
    plain   this process compares arrays; no Spark, no Java
    tasks   Spark runs plain for many stores in parallel
    joins   Spark writes rows to Parquet and joins them: any size, bounded memory

    \b
    tornpage audit /var/rocketmq/store
    tornpage audit STORE STORE --master 'local[*]' --json
    tornpage audit STORE --engine joins --work /big/rows --master 'local-cluster[2,1,1024]'
    tornpage audit STORE --rocketmq-version 4.8.0
    tornpage audit STORE --repair-to COPY --plan    (every intact record, at its offset)
    tornpage audit STORE --repair-to COPY --restore-quarantine
    tornpage audit STORE --repair-to COPY --log-file-bytes 1073741824    (other offsets and message ids)
    tornpage audit STORE --rebuild queues    (in place, with a backup; the store is closed)
    tornpage audit STORE --html store.html    (findings, a map of the files, queues, index)
    tornpage audit STORE --html store.html --redact    (for sharing: no topics, keys, hosts)
    """
    given = Asked(**asked)  # type: ignore[arg-type]
    if repair_to is None and only_plan:
        refuse("--plan needs --repair-to; give --repair-to DIR too")
    if repair_to is None and restore_quarantine:
        refuse("--restore-quarantine needs --repair-to; give --repair-to DIR too")
    if repair_to is None and log_file_bytes is not None:
        refuse("--log-file-bytes needs --repair-to; give --repair-to DIR too")
    if given.resume and given.overwrite:
        refuse("--resume and --overwrite exclude each other; give one of them")
    if given.work is None and given.resume:
        refuse("--resume needs --work; give --work DIR too")
    if given.work is None and html is None and given.overwrite:
        refuse("--overwrite needs --work or --html; give one of them too")
    if given.work is not None and given.engine in ("plain", "tasks"):
        refuse(f"engine {given.engine} writes no rows; give --engine joins, or leave --work out")
    if html is not None and (len(stores) != 1 or repair_to is not None):
        refuse("--html is the page of one store's audit; give one STORE, and no --repair-to")
    if redact and repair_to is not None:
        refuse("--redact applies to the output of an audit; give it without --repair-to")
    if html is not None:
        new_page(html, option="--html", overwrite=bool(given.overwrite))
    if rebuild is not None and (len(stores) != 1 or repair_to is not None or html is not None or redact):
        refuse("--rebuild works on one STORE in place; give it without --repair-to, --html and --redact")
    show = showing(redact=redact)
    if not given.resume:
        options.require_stores(stores)
    if rebuild is not None:
        outcome, text = rebuild_outcome(stores[0], rebuild, given)
    elif repair_to is None:
        outcome, text = audit_outcome(stores, given, show)
    elif len(stores) != 1:
        refuse("--repair-to mends a copy of one store; give one STORE")
    else:
        outcome, text = repair_outcome(
            stores[0],
            repair_to,
            given,
            only_plan=only_plan,
            with_quarantine=restore_quarantine,
            log_file_bytes=log_file_bytes,
        )
    if html is not None:
        audit_page(html, stores[0], outcome, show, file_bytes=given.file_bytes)
        text = f"{text}\n\n{html}"
    emit(outcome, as_json=as_json, text=text)
