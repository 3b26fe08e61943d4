"""From the options of `pktgen send` to a SendPlan and its reports."""

from __future__ import annotations

import gc
import os
import sys
import time
from fractions import Fraction
from typing import Any

import click

from pktgen_cli import device
from pktgen_cli.cli._cpus import parse_cpus
from pktgen_cli.cli._description import parse_seed, read_source, refuse_preprocessor, warn_dropped
from pktgen_cli.compiler import compile_source
from pktgen_cli.device import Link
from pktgen_cli.errors import CannotError, UsageError
from pktgen_cli.packing import pack
from pktgen_cli.program import Program, listing
from pktgen_cli.report import Report
from pktgen_cli.report.jsonl import JsonReport
from pktgen_cli.report.text import PlainReport, Summary
from pktgen_cli.schedule import Schedule, make_schedule
from pktgen_cli.send import Run
from pktgen_cli.stats import Requested
from pktgen_cli.units import Rate, UnitError, parse_count, parse_rate, parse_size, parse_time
from pktgen_cli.workers import LINK_BACKENDS, SendPlan

DEFAULT_SLOTS = 256
JUMBO_SLOT = 65536


def run_send(options: dict[str, Any]) -> int:
    """Check everything that can be checked before the start, then run; the exit code."""
    gc.disable()  # a description makes many small objects and no cycles
    _refuse(options)
    count = _quantity("-n", parse_count, options["num"]) or None
    duration = _time("--duration", options["duration"], "s")
    interval = _time("--interval", options["interval"], "s")
    if duration == 0:
        raise UsageError("--duration 0: the run would end before it starts")
    if not interval or interval < 10**6:
        raise UsageError(f"--interval {options['interval']}: at least 1ms")
    rate = _pace(options)
    cpus = parse_cpus(options["cpus"])
    seed = parse_seed(options["seed"])
    source = read_source(options["infile"], options["words"])
    compiled = compile_source(source, seed=seed, strict=options["strict"], random_order=options["rand"])
    sys.stderr.write(compiled.diagnostics.render())
    program = compiled.program
    backend, output, link = _output(options["output"], options["backend"])
    if link is not None and not options["no_size_check"]:
        device.check_sizes(program, link)
    schedule = make_schedule(program, workers=len(cpus), count=count)
    warn_dropped(program, schedule.dropped, len(cpus), options["strict"])
    if len(set(cpus)) < len(cpus) and (count is None or count > len(set(cpus))):
        click.echo(f"pktgen: warning: {len(cpus)} workers share {len(set(cpus))} CPUs", err=True)
    slots, slot_size = _ring(options, program)
    plan = SendPlan(
        program=program,
        packed=pack(program),
        schedule=schedule,
        backend=backend,
        output=output,
        link=link,
        cpus=cpus,
        count=count,
        duration_ns=None if duration is None else max(1, round(duration)),
        period=_period(rate, program, schedule, link),
        bypass=not options["qdisc_path"],
        ring_slots=slots,
        ring_slot_size=slot_size,
        start_ns=0 if options["seed"] is not None else time.time_ns(),
        stop_on_down=options["on_down"] == "stop",
        user=_identity("-u", options["user"]),
        group=_identity("-g", options["group"]),
        high_priority=options["prio_high"],
    )
    if os.geteuid() and (plan.user is not None or plan.group is not None or plan.high_priority):
        raise CannotError("-u, -g and -H need root", "run as root, or leave them out")
    if options["verbose"]:
        sys.stderr.write("".join(f"{line}\n" for line in listing(program)))
    text = options["rate"] or options["gap"] or ""
    requested = Requested(count, plan.duration_ns, None if plan.period is None else float(plan.period), text)
    reports, seconds = _reports(options, float(interval) / 1e9)
    gc.freeze()
    return Run(plan, requested, reports, seconds).run()


def _refuse(options: dict[str, Any]) -> None:
    refuse_preprocessor(options["cpp"], options["defines"])
    if options["smoke_test"] is not None:
        raise UsageError("-s: the smoke test is not there yet", "check the exit code and the link's counter")
    if options["rfraw"]:
        raise UsageError("-R: injecting raw 802.11 frames is not there yet", "send on a monitor interface: -o mon0")
    if options["kernel_pull"] is not None:
        click.echo("pktgen: warning: -k has no effect: the kernel pulls by itself", err=True)
    if options["as_json"] and options["json_stream"]:
        raise UsageError("--json and --json-stream exclude each other")


def _quantity(option: str, parse: Any, text: str) -> Any:
    try:
        return parse(text)
    except UnitError as error:
        raise UsageError(f"{option}: {error}") from None


def _time(option: str, text: str | None, bare: str) -> Fraction | None:
    return None if text is None else _quantity(option, lambda t: parse_time(t, bare=bare), text)


def _pace(options: dict[str, Any]) -> Rate | None:
    """The rate of -b or -t, whichever came last."""
    rate = None if options["rate"] is None else _quantity("-b", parse_rate, options["rate"])
    gap = _time("-t", options["gap"], "us")
    if rate is not None and (gap is None or click.get_current_context().meta["pktgen.pace"] == "rate"):
        return rate  # type: ignore[no-any-return]
    if gap is not None:
        return Rate("packets", Fraction(10**9) / gap if gap else Fraction(0), text=options["gap"])
    return None


def _period(rate: Rate | None, program: Program, schedule: Schedule, link: Link | None) -> Fraction | None:
    """Nanoseconds between slots; a rate in bits counts the mean frame of what is sent."""
    if rate is None or not schedule.groups:
        return None
    mean = Fraction(0)
    for group in schedule.groups:
        packets = [program.packets[packet] for packet, _ in group.turns]
        mean += group.share * Fraction(sum(p.min_length + p.max_length for p in packets), 2 * len(packets))
    speed = device.link_speed(link.name) if link is not None and rate.kind == "share" else None
    if rate.kind != "packets" and mean == 0:
        raise UsageError(f"-b {rate.text}: a rate in bits needs packets that are not empty")
    try:
        return rate.packet_period(mean, speed)
    except UnitError as error:
        raise UsageError(f"-b: {error}") from None


def _output(name: str | None, backend: str | None) -> tuple[str, str, Link | None]:
    """(backend, name for messages or path, link). A name is a link if one has it."""
    if name is None:
        if backend == "null":
            return "null", "null", None
        raise UsageError("no output", "give a link or a capture file: -o veth0, -o out.pcap")
    kind, colon, rest = name.partition(":")
    if colon and kind in ("pcap", "dev"):
        name, is_file = rest, kind == "pcap"
    elif device.link_exists(name):
        is_file = False
    elif ".cfg" in name and ".pcap" not in name:
        raise UsageError(f"-o {name}: writing descriptions is not there yet", "write a capture file: -o x.pcap")
    else:
        is_file = ".pcap" in name or backend == "pcap"
    if is_file and backend in LINK_BACKENDS:
        raise UsageError(f"--backend {backend} sends on links, and {name} is a file")
    if not is_file and backend == "pcap":
        raise UsageError(f"--backend pcap writes a file, and {name} is a link", f"write -o pcap:{name} for a file")
    if is_file:
        if not name:
            raise UsageError("-o pcap: needs a file name", "write -o pcap:FILE")
        return backend or "pcap", name, None
    link = device.find_link(name)
    return backend or "mmsg", link.name, None if backend == "null" else link


def _ring(options: dict[str, Any], program: Program) -> tuple[int, int]:
    """(slots, least slot size) from -S and -J; trafgen counts the ring in bytes."""
    least = JUMBO_SLOT if options["jumbo_support"] else 0
    if options["ring_size"] is None:
        return (DEFAULT_SLOTS if not least else 16), least
    from pktgen_cli import _fastpath

    size = _quantity("-S", parse_size, options["ring_size"])
    slot, _, _ = _fastpath.ring_geometry(max(program.max_length, least - _fastpath.RING_HEADER), 4096)
    if size < 2 * slot:
        raise UsageError(f"-S {options['ring_size']}: less than two slots of {slot} bytes")
    return size // slot, least


def _identity(option: str, text: str | None) -> int | None:
    """A user or group by name or number."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        if len(text) > 10 or int(text) >= 2**32 - 1:  # 2^32-1 would mean "stay"
            raise UsageError(f"{option}: {text[:20]} is no user or group number, 0 to {2**32 - 2}")
        return int(text)
    import grp
    import pwd

    try:
        return pwd.getpwnam(text).pw_uid if option == "-u" else grp.getgrnam(text).gr_gid
    except KeyError:
        raise UsageError(f"{option}: there is no {'user' if option == '-u' else 'group'} named {text!r}") from None


def _reports(options: dict[str, Any], interval: float) -> tuple[list[Report], float]:
    """JSON or a summary as the result; beside it a table on a terminal, else plain lines."""
    if options["as_json"] or options["json_stream"]:
        return [PlainReport(), JsonReport(stream=options["json_stream"])], interval
    summary = Summary(cpu_lines=not options["no_cpu_stats"])
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        from pktgen_cli.report import live

        return [live.LiveReport(), summary], live.REFRESH
    return [PlainReport(), summary], interval
