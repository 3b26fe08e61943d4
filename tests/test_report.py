"""Reports: means, rates that are never negative, many CPUs on a small terminal, the verdict on the link."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pktgen_cli.report.jsonl import end_object, interval_object
from pktgen_cli.report.live import LiveReport
from pktgen_cli.report.text import Summary
from pktgen_cli.stats import CounterMemory, Counters, End, Interval, Reason, Requested, Sample, Start, rates

START = Start(
    version="1", command_line=("pktgen",), time_ns=1, kernel="Linux", seed=7, backend="mmsg", output="v0",
    link={"name": "v0", "ifindex": 2, "mtu": 1500, "address": "", "driver": "veth"}, cpus=(0,), pids=(1,),
    qdisc_bypass=True, requested=Requested(10, None, None, ""), packets=1, packet_bytes=60, digest="0" * 64,
    worker_numbers=(0,),
)  # fmt: skip


def end(link: int | None, **counters: int) -> End:
    worker = Counters(tx_packets=10, tx_bytes=600, first_ns=1_000_000, last_ns=10_000_000, **counters)
    return End(Sample(20_000_000, (worker,)), 1_000_000, (Reason.SENT,), 0, "", link)


@given(st.integers(-(2**64), 2**64), st.integers(-(2**64), 2**64), st.integers(-(2**40), 2**64))
def test_rates_are_finite_and_never_negative(packets: int, octets: int, duration: int) -> None:
    found = rates(packets, abs(octets), duration)
    assert all(math.isfinite(r) and r >= 0 for r in (found.pps, found.bits_l2, found.bits_l1))


def test_layer_1_counts_24_bytes_a_frame() -> None:
    found = rates(1000, 60_000, 10**9)
    assert (found.pps, found.bits_l2, found.bits_l1) == (1000, 480_000, 672_000)


def test_achieved_counts_intervals_between_packets() -> None:
    assert end(10).achieved.pps == pytest.approx(9 / 0.009)


@pytest.mark.parametrize(
    ("link", "words"), [(10, "matches"), (12, "differs by +2"), (7, "differs by -3"), (None, "cannot be read")]
)
def test_verdict_on_the_link(link: int | None, words: str) -> None:
    summary = Summary(cpu_lines=True)
    summary.start(START)
    text = "\n".join(summary.lines(end(link)))
    assert words in text
    matches = end_object(START, end(link))["link"]["matches"]
    assert matches is (None if link is None else link == 10)


def test_given_up_packets_are_named() -> None:
    summary = Summary(cpu_lines=False)
    summary.start(START)
    worker = replace(end(10).sample.workers[0], abandoned=3, refused=(("EMSGSIZE", 3),))
    lines = summary.lines(replace(end(10), sample=Sample(1, (worker,))))
    assert "refused   EMSGSIZE 3 (3 packets given up)" in lines
    for name, words in (("ENOBUFS", " (each tried again)"), ("ENXIO", "")):
        worker = replace(end(10).sample.workers[0], refused=((name, 2),))
        assert f"refused   {name} 2{words}" in summary.lines(replace(end(10), sample=Sample(1, (worker,))))


def test_the_sum_stays_in_sight_with_256_cpus() -> None:
    report = LiveReport()
    report.console = Console(width=80, height=24, force_terminal=False)
    report.facts = replace(START, cpus=tuple(range(0, 512, 2)))
    workers = tuple(Counters(tx_packets=1, tx_bytes=60, last_ns=10**9, state=2) for _ in range(256))
    with report.console.capture() as shown:
        report.console.print(report.table(Interval(0, Sample(0, (Counters(),) * 256), Sample(10**9, workers))))
    lines = shown.get().splitlines()
    assert len(lines) <= 24
    assert "256" in lines[-2]
    assert "241 more" in lines[-4]
    assert max(map(len, lines)) <= 80


def test_the_last_interval_shows_means_but_reports_its_own() -> None:
    before = Sample(10**9, (Counters(tx_packets=100, tx_bytes=6000, last_ns=10**9),))
    after = Sample(10**9 + 10**6, (Counters(tx_packets=101, tx_bytes=6060, last_ns=10**9),))
    interval = Interval(0, before, after, last=True)
    assert interval.shown().pps == 100  # 100 intervals between 101 packets in a second
    assert interval_object(START, interval)["tx_pps"] == pytest.approx(1000)


def test_counter_memory_reads_what_was_written() -> None:
    memory = CounterMemory(2)
    assert memory.sample().tx_packets == 0
    words = memoryview(memory.memory).cast("Q")
    words[2 * 160], words[2 * 160 + 24 + 105] = 2**40, 5
    assert memory.sample().workers[1] == Counters(tx_packets=2**40, refused=(("ENOBUFS", 5),))
    assert memory.sample().refused == {"ENOBUFS": 5}
