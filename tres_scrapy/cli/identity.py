"""`tres identity`: make the key that a crawler signs its requests with, and show or remove keys."""

from __future__ import annotations

from pathlib import Path

import click

from tres_scrapy.cli.command import Command, option, refuse
from tres_scrapy.downloader.identity import MEDIA_TYPE, WELL_KNOWN, Identity, KeyFolder, origin_of
from tres_scrapy.url.message import TresError, plural


@click.command(
    cls=Command,
    syntax="new [https://HOST] | show | remove KEY [--folder DIR]",
    epilog="Example: tres identity new https://crawler.example.org",
)
@click.argument("words", nargs=-1)
@option(
    "--folder",
    metavar="DIR",
    type=Path,
    help="folder of the keys and of the directory to publish (default: ./identity)",
)
def command(words: tuple[str, ...], folder: Path | None) -> None:
    """Make a key that identifies your crawler, and the directory that sites read it from.

    HOST is a site of yours: the directory is published there. A crawl with --identity KEY signs
    every request. A second `new` adds a key beside the others; `remove` deletes one.
    """
    keys = KeyFolder(folder or Path("identity"))
    match words:
        case ("new", *more) if len(more) < 2:
            _make(keys, origin_of(more[0]) if more else None)
        case ("show",):
            _show(keys)
        case ("remove", key):
            keys = KeyFolder(folder or Path(key).parent)
            keys.remove(Path(key))
            print(f"{key} is deleted. Publish again, as `tres identity show` says:")
            print(f"  {keys.directory}\n  {keys.headers}")
        case _:
            refuse("`new`, `show` or `remove KEY`", words)


def _make(keys: KeyFolder, agent: str | None) -> None:
    older = keys.identities()
    path = keys.add(agent)
    print(f"{path}  is the new key. Keep it secret: who has it can crawl in your name.")
    _tell_to_publish(keys, Identity.read(path).agent)
    if older:
        count = len(older)
        print(f"The directory still lists {count} older {plural(count, 'key')}. Wait a day, until")
        print("sites have read it again. Then crawl with the new key, and remove an older one once")
        print(f"no crawl uses it: tres identity remove {next(iter(older))}")
    print(f"Crawl: tres crawl TOPIC URL --identity {path}")


def _show(keys: KeyFolder) -> None:
    identities = keys.identities()
    if not identities:
        raise TresError(f"no keys in {str(keys.path)!r}: make one with `tres identity new`")
    for path, identity in identities.items():
        print(f"{path}  {identity.agent}  {identity.keyid}")
    _tell_to_publish(keys, identity.agent)


def _tell_to_publish(keys: KeyFolder, agent: str) -> None:
    print(f"{keys.directory}  is to be published as")
    print(f"  {agent}{WELL_KNOWN}")
    print(f"  with the type {MEDIA_TYPE}, best with all headers of {keys.headers}")
