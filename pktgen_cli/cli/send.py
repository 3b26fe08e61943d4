"""`pktgen send`: every option of trafgen with its letter and meaning, new ones long only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pktgen_cli.cli._description import description_options

if TYPE_CHECKING:
    pass

BACKENDS = ("mmsg", "ring", "pcap", "null")

EXAMPLE = """\
/* A UDP packet whose source port and address change; checksums follow. Save it as example.cfg */
{
  fill(0xff, 6), 0x02, 0, 0, 0, 0, 1, c16(0x0800),            # Ethernet
  0x45, 0, c16(46), drnd(2), 0x40, 0, 64, 17, csumip(14, 33), # IPv4
  10, 0, 0, dinc(1, 250), 10, 0, 0, 2,
  drnd(2), c16(9), c16(26), csumudp(14, 34),                  # UDP
  "eighteen bytes ...",
}
"""


def _last_of(name: str) -> Any:
    """-t and -b exclude each other and the later one wins, as in trafgen: keep the order."""

    def callback(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
        if value is not None:
            ctx.meta["pktgen.pace"] = name
        return value

    return callback


def _example(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        click.echo(EXAMPLE, nl=False)
        ctx.exit()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-o", "--out", "-d", "--dev", "output", metavar="LINK|FILE.pcap",
    help="Where to: a link, or a capture file (a name that contains .pcap; pcap:NAME, dev:NAME say which)."
    "  [required]",
)
@description_options
@click.option(
    "-n", "--num", metavar="COUNT", default="0", show_default=True,
    help="Packets in total over all workers; k, M, G allowed; 0 is endless.",
)
@click.option("--duration", metavar="TIME", help="End after this time (s if no unit).  [default: none]")
@click.option(
    "-b", "--rate", metavar="RATE", callback=_last_of("rate"),
    help="Rate over all workers: 10kpps, 100Mbit, 5MB, 50%; @l1 counts FCS, preamble and gap. The later of"
    " -b and -t wins.  [default: no limit]",
)
@click.option(
    "-t", "--gap", metavar="TIME", callback=_last_of("gap"),
    help="Time between packets over all workers (us if no unit).  [default: none]",
)
@click.option(
    "-P", "--cpus", metavar="N|LIST",
    help="Workers, or the CPUs to pin them to: 2, 0-3,8.  [default: one for each CPU]",
)
@click.option(
    "--backend", type=click.Choice(BACKENDS),
    help="How: mmsg (sendmmsg), ring (PACKET_TX_RING), pcap (file), null (build and drop).  [default: mmsg"
    " on links, pcap on files]",
)
@click.option("-q", "--qdisc-path", is_flag=True, help="Send through the link's qdisc.  [default: bypass it]")
@click.option(
    "-S", "--ring-size", metavar="SIZE",
    help="Ring of a worker (KiB, MiB, GiB), with --backend ring.  [default: 256 slots]",
)
@click.option(
    "-J", "--jumbo-support", is_flag=True,
    help="Ring slots of 64 KiB.  [default: sized to the largest packet]",
)
@click.option(
    "--on-down", type=click.Choice(["pause", "stop"]), default="pause", show_default=True,
    help="When the link goes down: wait for it, or end with exit code 1.",
)
@click.option(
    "--no-size-check", is_flag=True,
    help="Leave frame sizes to the kernel.  [default: refuse at the start]",
)
@click.option(
    "-u", "--user", metavar="USER",
    help="Become this user (name or number) once sockets are open.  [default: stay]",
)
@click.option(
    "-g", "--group", metavar="GROUP",
    help="Become this group (name or number) once sockets are open.  [default: stay]",
)
@click.option(
    "-H", "--prio-high", is_flag=True,
    help="Run workers at nice -20 with SCHED_FIFO.  [default: normal]",
)
@click.option(
    "--json", "as_json", is_flag=True,
    help="One JSON object on stdout at the end.  [default: text]",
)
@click.option(
    "--json-stream", is_flag=True,
    help="One JSON object a line on stdout while running.  [default: text]",
)
@click.option(
    "--interval", metavar="TIME", default="1s", show_default=True,
    help="Between lines or JSON intervals (s if no unit).",
)
@click.option(
    "-C", "--no-cpu-stats", is_flag=True,
    help="No line a CPU in the summary.  [default: print them]",
)
@click.option(
    "-V", "--verbose", is_flag=True,
    help="List the program before sending (stderr).  [default: off]",
)
@click.option(
    "-e", "--example", is_flag=True, is_eager=True, expose_value=False, callback=_example,
    help="Print an example description and end.",
)
@click.option("-k", "--kernel-pull", metavar="TIME", hidden=True)
@click.option("-A", "--no-sock-mem", is_flag=True, hidden=True)
@click.option("-Q", "--notouch-irq", is_flag=True, hidden=True)
@click.option("-s", "--smoke-test", metavar="ADDRESS", hidden=True)
@click.option("-R", "--rfraw", is_flag=True, hidden=True)
@click.version_option(None, "-v", "--version", package_name="pktgen-cli", prog_name="pktgen")
def command(**options: Any) -> int:
    """Send packets to a link, or write them to a capture file.

    \b
    pktgen send -o veth0 -n 1000 -t 1ms '{ fill(0xff,6), drnd(6), c16(0x88b5), fill(0,46) }'
    pktgen send -o veth0 -i configs/udp.cfg -b 100kpps --duration 10s
    pktgen send -o out.pcap -n 10 -E 7 -i configs/udp.cfg
    pktgen send --backend null -n 10M --json -i configs/udp.cfg

    Accepted for trafgen's sake, without effect: -k (the kernel pulls by itself), -A and -Q
    (no sysctl and no IRQ is ever touched). Refused: -p and -D (preprocessor), -s (smoke
    test), -R (802.11 injection), .cfg output and .pcap input; they are not there yet.
    """
    from pktgen_cli.cli import _plan

    return _plan.run_send(options)
