"""`pktgen show`: what a description means, without sending it. Needs no privileges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pktgen_cli.cli._description import (
    description_options,
    parse_seed,
    read_source,
    refuse_preprocessor,
    warn_dropped,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pktgen_cli.program import Program

MAX_LISTED = 100
"""Packets shown without --index or --packet."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@description_options
@click.option(
    "--index", metavar="K",
    help="Show the frame of slot K of the run, from 0; with --packet, that packet's frame K.  [default: 0]",
)
@click.option("--packet", metavar="J", help="Show packet J, from 0 in file order.  [default: all]")
@click.option("-n", "--num", metavar="COUNT", help="The run's packets: places cpu() groups.  [default: 0, endless]")
@click.option("-P", "--cpus", metavar="N|LIST", help="Workers, for cpu() selectors.  [default: one for each CPU]")
@click.option("--program", "only_program", is_flag=True, help="Only the program listing.  [default: both]")
@click.option("--hex", "only_hex", is_flag=True, help="Only the bytes.  [default: both]")
def command(
    words: tuple[str, ...], infile: str | None, rand: bool, seed: str | None, strict: bool, cpp: bool,
    defines: tuple[str, ...], index: str | None, packet: str | None, num: str | None, cpus: str | None,
    only_program: bool, only_hex: bool,
) -> None:  # fmt: skip
    """Show the bytes of a description, and the program that changes them.

    \b
    pktgen show '{ fill(0xff,6), drnd(6), c16(0x88b5), dinc(0,9) }'
    pktgen show -i configs/udp.cfg --index 123456 -E 7
    pktgen show -i configs/ipv6.cfg --packet 1 --index 9
    """
    import sys

    from pktgen_cli.cli._cpus import parse_cpus
    from pktgen_cli.compiler import compile_source
    from pktgen_cli.errors import UsageError
    from pktgen_cli.schedule import locate, make_schedule, pick

    refuse_preprocessor(cpp, defines)
    chosen = parse_seed(seed)
    compiled = compile_source(read_source(infile, words), seed=chosen, strict=strict, random_order=rand)
    sys.stderr.write(compiled.diagnostics.render())
    program = compiled.program
    schedule = make_schedule(program, workers=len(parse_cpus(cpus)), count=_count(num))
    warn_dropped(program, schedule.dropped, schedule.workers, strict)
    if packet is not None:
        number = _whole(packet, "--packet")
        if number >= len(program.packets):
            raise UsageError(f"--packet {number}: the description has {len(program.packets)} packets, from 0")
        frames = [(f"packet {number}", number, _whole(index or "0", "--index"))]
    elif index is not None:
        slot = _whole(index, "--index")
        found = locate(schedule, slot)
        if found is None:
            raise UsageError(f"--index {slot}: the run has no such slot")
        number, m = pick(program, *found)
        frames = [(f"slot {slot}: packet {number}", number, m)]
    else:
        frames = [(f"packet {number}", number, 0) for number in range(min(len(program.packets), MAX_LISTED))]
    both = only_program == only_hex
    lines = list(_lines(program, frames, both or only_hex, both or only_program))
    if lines:
        click.echo("\n".join(lines))
    if len(program.packets) > len(frames) == MAX_LISTED:
        click.echo(f"... and {len(program.packets) - MAX_LISTED} more packets", err=True)
    if rand and index is not None and packet is None:
        click.echo("order is random: the occurrence is the slot", err=True)
    if seed is None and any(p.ops for p in program.packets):
        click.echo(f"seed {chosen}", err=True)


def _lines(
    program: Program, frames: list[tuple[str, int, int]], with_hex: bool, with_program: bool
) -> Iterator[str]:
    from pktgen_cli import reference
    from pktgen_cli.program import listing

    for label, number, occurrence in frames:
        data = reference.frame(program, number, occurrence)
        if with_hex:
            yield f"{label}, occurrence {occurrence}, {len(data)} bytes"
            yield from hex_lines(data)
        if with_program:
            yield from listing(program, range(number, number + 1))


def hex_lines(data: bytes) -> Iterator[str]:
    """Offset, 16 bytes in hex, and their ASCII characters."""
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        pairs = f"{row[:8].hex(' ')}  {row[8:].hex(' ')}".rstrip()
        yield f"  {at:04x}  {pairs:<48}  {text}"


def _whole(text: str, option: str) -> int:
    from pktgen_cli.errors import UsageError
    from pktgen_cli.units import UnitError, parse_count

    try:
        return parse_count(text)
    except UnitError as error:
        raise UsageError(f"{option}: {error}") from None


def _count(text: str | None) -> int | None:
    return (_whole(text, "-n") or None) if text is not None else None
