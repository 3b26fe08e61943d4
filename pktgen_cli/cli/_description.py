"""Where a description comes from: -i or -c FILE, - for stdin, or arguments. The same for every command."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pktgen_cli.diagnostics import Source
from pktgen_cli.errors import UsageError

if TYPE_CHECKING:
    from pktgen_cli.program import Program

F = TypeVar("F", bound=Callable[..., Any])


def description_options(function: F) -> F:
    """Adds `infile`, `words`, `seed`, `strict` and `rand` to a command."""
    for decorate in reversed((
        click.argument("words", nargs=-1, metavar="[DESCRIPTION | FILE]"),
        click.option(
            "-i", "--in", "-c", "--conf", "infile", metavar="FILE",
            help="Read the description from FILE; - is stdin.  [default: the arguments]",
        ),
        click.option("-r", "--rand", is_flag=True, help="Draw each packet at random.  [default: in turn]"),
        click.option(
            "-E", "--seed", metavar="N", help="Seed of all random values, 0 to 2^64-1.  [default: drawn, and printed]"
        ),
        click.option("--strict", is_flag=True, help="Make every warning an error.  [default: off]"),
        click.option("-p", "--cpp", is_flag=True, help="Not there yet: preprocess the description."),
        click.option(
            "-D", "--define", "defines", metavar="MACRO", multiple=True, help="Not there yet: a macro for -p."
        ),
    )):  # fmt: skip
        function = decorate(function)
    return function


def read_source(infile: str | None, words: tuple[str, ...]) -> Source:
    """The description that the user means. Raises UsageError when there is none."""
    if words:
        text = " ".join(words)
        if infile is not None:
            click.echo(f"pktgen: warning: the description in the arguments is used, not -i {infile}", err=True)
        if text == "-":
            return read_source("-", ())
        if os.path.isfile(text) or ("{" not in text and os.path.exists(text)):  # never raise, however long the text
            return _read_file(text)
        if "{" in text:
            return Source("<argument>", os.fsencode(text))
        hints = ["a description is written { 0xff, 1, ... }"]
        if "(" in text or re.fullmatch(r"[{}0-9a-fA-FxX,;\s]+", text):
            hints = [f"are braces missing? Write '{{ {text} }}'"]
        raise UsageError(f"no file named {text!r}", *hints)
    if not infile:
        raise UsageError("no description", "give a file, - for stdin, or a packet such as '{ fill(0xff, 60) }'")
    if infile == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise UsageError("-i -: standard input is closed")
        try:
            return Source("<stdin>", sys.stdin.buffer.read())
        except OSError as error:
            raise UsageError(f"-i -: {error.strerror}") from None
    return _read_file(infile)


def _read_file(name: str) -> Source:
    if ".pcap" in Path(name).name:
        raise UsageError(f"{name}: capture files cannot be replayed yet", "give a description")
    try:
        return Source(name, Path(name).read_bytes())
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None


def refuse_preprocessor(cpp: bool, defines: tuple[str, ...]) -> None:
    if cpp or defines:
        raise UsageError(
            f"{'-p' if cpp else '-D'}: the preprocessor is not there yet",
            "run cpp yourself: cpp -P FILE | pktgen ... -i -",
        )


def parse_seed(text: str | None) -> int:
    """The seed as a number; a fresh one where none was given."""
    if text is None:
        return int.from_bytes(os.urandom(8), "little") >> 1
    try:
        seed = int(text[:100], 0)
    except ValueError:
        raise UsageError(f"-E {text}: the seed is a number, 0 to 2^64-1") from None
    if not 0 <= seed < 2**64:
        raise UsageError(f"-E {text}: the seed is 0 to 2^64-1")
    return seed


def warn_dropped(program: Program, dropped: tuple[int, ...], workers: int, strict: bool) -> None:
    """Say which packets no worker sends, and when there is none at all."""
    for number in dropped[:10]:
        first, last = program.packets[number].workers or (0, 0)
        text = f"packet {number} is for workers {first}-{last}, but there are {workers}, from 0: it is not sent"
        if strict:
            raise UsageError(text)
        click.echo(f"pktgen: warning: {text}", err=True)
    if not program.packets:
        if strict:
            raise UsageError("the description holds no packet")
        click.echo("pktgen: warning: the description holds no packet: nothing is sent", err=True)
