"""`pktgen demo`: the whole way from a description to counted packets, on links of its own."""

from __future__ import annotations

import os
import signal
import sys

import click

from pktgen_cli.errors import EXIT_SIGTERM, UsageError

SECONDS = 3
RATE = "100kpps"
CAPTURE = "pktgen-demo.pcap"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", required=False)
def command(file: str | None) -> int:
    """Send for three seconds over a veth pair, and check what arrived.

    \b
    pktgen demo
    pktgen demo configs/udp.cfg

    Makes two network namespaces and removes them again; nothing else on the machine is touched. Needs
    root; without it, writes the capture file pktgen-demo.pcap into the current directory.
    """
    if os.geteuid() != 0:
        click.echo(f"not root: no namespaces can be made, so this demo writes {CAPTURE}", err=True)
        return _run([*_send(file), "-o", f"pcap:{CAPTURE}", "-n", "1000"])
    from pktgen_cli.errors import EXIT_CHECK
    from pktgen_cli.lab import RX_LINK, TX_LINK, Lab

    if file is not None and not os.path.isfile(file):
        raise UsageError(f"{file}: there is no such file")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    with Lab() as lab:
        click.echo(f"{TX_LINK} in namespace {lab.tx} -- veth -- {RX_LINK} in namespace {lab.rx}", err=True)
        arguments = [*_send(file), "-o", TX_LINK, "-b", RATE, "-n", str(100_000 * SECONDS)]
        click.echo(f"$ pktgen {' '.join(arguments[3:])}", err=True)
        child = lab.popen(lab.tx, arguments)
        code = child.wait()
        arrived = lab.counters(lab.rx, RX_LINK)["rx_packets"]
    if code:
        return code
    wanted = 100_000 * SECONDS
    verdict = "all of them arrived" if arrived == wanted else f"differs by {arrived - wanted:+,}"
    click.echo(f"{RX_LINK} received {arrived:,} packets: {verdict}")
    return 0 if arrived == wanted else EXIT_CHECK


def _leave(number: int, frame: object) -> None:
    """End by way of the lab's removal."""
    sys.exit(EXIT_SIGTERM)


def _send(file: str | None) -> list[str]:
    from pktgen_cli.cli.send import EXAMPLE

    return [sys.executable, "-m", "pktgen_cli", "send", *(["-i", file] if file else [EXAMPLE])]


def _run(arguments: list[str]) -> int:
    import subprocess

    return subprocess.run(arguments, check=False).returncode
