"""`tornpage init`."""

import click

from tornpage.cli import options
from tornpage.cli.document import emit

__all__ = ["command"]


@click.command("init")
@click.argument("name")
@click.option(
    "--language",
    type=click.Choice(["python", "go", "rust", "java", "node", "c"]),
    required=True,
    help="The language of the adapter.",
)
@click.option(
    "--shape",
    type=click.Choice(["messages", "key-value", "queue", "log", "file"]),
    default="messages",
    show_default=True,
    help="The verbs of the store (docs/targets/shapes.md).",
)
@click.option(
    "--directory", type=click.Path(file_okay=False), default=".", show_default=True, help="Where to write the files."
)
@options.json_option
def command(name: str, language: str, shape: str, directory: str, as_json: bool) -> None:
    """Write a skeleton that connects a store of yours, NAME, to tornpage.

    \b
    tornpage init mystore --language python
    tornpage init mystore --language go --directory crashtest
    tornpage init mystore --language python --shape key-value

    The skeleton is one file. It holds a small correct store and its promises, so that the first run holds. Replace its
    methods by calls into your library, and state what your store promises (docs/test-your-store.md). For Python a test
    is written too. Nothing is ever overwritten.
    """
    from tornpage.outcomes.skeletons import init_outcome

    outcome, text = init_outcome(name, language=language, shape=shape, directory=directory)
    emit(outcome, as_json=as_json, text=text)
