"""The conformance suite of every backend, on a veth pair or in a file.

A backend passes unchanged: exact counts, frames in order for each worker, equal captures
for the same description and seed, nothing lost or doubled whatever the ring's size.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import re
import socket
import struct
import subprocess
import threading
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from conftest import TEST_FRAME, Capture, Sender, need, pktgen, send, socket_in, wait_until

from pktgen_cli import _fastpath, reference
from pktgen_cli.compiler import compile_source
from pktgen_cli.diagnostics import Source
from pktgen_cli.lab import Lab, enter
from pktgen_cli.packing import pack
from pktgen_cli.program import MASK64, ORDER_PACKET, Op, OpCode, Packet, Program, field_key
from pktgen_cli.schedule import GROUP_RECORD, locate, make_schedule, pack_worker, pick, worker_slots
from pktgen_cli.stats import COUNTERS_WORDS, Reason
from pktgen_cli.units import parse_rate

ON_LINKS = sorted(set(_fastpath.TX_BACKENDS) - {"pcap", "null"})
NUMBERED = "{ fill(0xff,6), 2,0,0,0,0,1, c16(0x88b5), dinc(0,255), drnd(8), fill(0,37) }"
MIXED = (
    "{ fill(0xff,6), 2,0,0,0,0,1, c16(0x0800), 0x45,0,c16(46),drnd(2),0x40,0,64,17,csumip(14,33),10,0,0,dinc(1,250),"
    "10,0,0,2,drnd(2),drnd(2),c16(26),csumudp(14,34),fill(0x41,18) } { fill(1,20), ddec(0,9) } { fill(2,1514) }"
)

pytestmark = pytest.mark.root


def expected(text: str, count: int, *, workers: int = 1, seed: int = 7) -> list[list[bytes]]:
    """What each worker sends, in order, by the reference executor."""
    program = compile_source(Source("t", text.encode()), seed=seed).program
    plan = make_schedule(program, workers=workers, count=count)
    return [
        [reference.frame(program, *pick(program, group, slot)) for group, slot in worker_slots(plan, w, count)]
        for w in range(workers)
    ]


def read_pcap(path: Path) -> tuple[int, list[tuple[int, bytes]]]:
    """(link type, [(nanoseconds, frame)]) of a nanosecond capture file of this machine's byte order."""
    data = path.read_bytes()
    magic, major, minor, _, _, snaplen, link_type = struct.unpack_from("=IHHiIII", data)
    assert (magic, major, minor) == (0xA1B23C4D, 2, 4)
    at, found = 24, []
    while at < len(data):
        seconds, nano, captured, length = struct.unpack_from("=IIII", data, at)
        assert captured == length <= snaplen
        frame = data[at + 16 : at + 16 + captured]
        assert len(frame) == captured
        found.append((seconds * 10**9 + nano, frame))
        at += 16 + captured
    return link_type, found


@pytest.mark.parametrize("backend", ON_LINKS)
@pytest.mark.parametrize(
    ("count", "workers"), [(1, 2), (2, 2), (3, 2), (7, 3), (64, 1), (65, 2), (20_000, 1), (50_001, 2)]
)
def test_exact_count(lab: Lab, backend: str, count: int, workers: int) -> None:
    run = send(lab, "-n", str(count), "-P", str(workers), "--backend", backend, "--json", TEST_FRAME)
    assert run.code == 0, run.stderr
    end = run.json["end"]
    assert end["tx_packets"] == sum(w["tx_packets"] for w in end["workers"]) == count
    assert end["tx_bytes_l2"] == 60 * count
    assert end["link"] == {"tx_packets": count, "matches": True}
    assert lab.counters(lab.rx, "v1")["rx_packets"] == count
    assert lab.counters(lab.tx, "v0")["rx_packets"] == 0


@pytest.mark.parametrize("backend", ON_LINKS)
@pytest.mark.parametrize("workers", [1, 2])
def test_numbered_frames_all_arrive_in_order(lab: Lab, backend: str, workers: int, tmp_path: Path) -> None:
    count = 20_000
    text = "".join(f"{{ fill(0xff,12), c16(0x88b5), c32({i}), fill(0,42) }}" for i in range(1000))
    capture = Capture(lab)
    path = tmp_path / "numbered.cfg"
    path.write_text(text)
    run = send(lab, "-n", str(count), "-P", str(workers), "--backend", backend, "-i", str(path))
    assert run.code == 0, run.stderr
    frames = capture.frames(count)
    numbers = [int.from_bytes(f[14:18], "big") for f in frames]
    assert len(numbers) == count
    for worker in range(workers):
        own = [n for n in numbers if n % workers == worker]
        assert own == [(worker + workers * i) % 1000 for i in range(count // workers)]


@pytest.mark.parametrize("backend", [*ON_LINKS, "pcap"])
def test_equal_captures_from_every_backend(lab: Lab, backend: str, tmp_path: Path) -> None:
    count = 300
    for workers in (1, 2):
        wanted = expected(MIXED, count, workers=workers)
        if backend == "pcap":
            path = tmp_path / "x.pcap"
            made = pktgen("send", "-o", str(path), "-n", str(count), "-P", str(workers), "-E", "7", MIXED)
            assert made.returncode == 0
            link_type, records = read_pcap(path)
            assert link_type == 1
            assert [t for t, _ in records] == list(range(count))
            assert [f for _, f in records] == expected(MIXED, count)[0]
            continue
        capture = Capture(lab)
        run = send(lab, "-n", str(count), "-P", str(workers), "-E", "7", "--backend", backend, MIXED)
        assert run.code == 0, run.stderr
        frames = capture.frames(count)
        assert Counter(frames) == Counter(f for own in wanted for f in own)
        if workers == 1:
            assert frames == wanted[0]


def test_a_file_holds_slots_in_ascending_order(tmp_path: Path) -> None:
    """With several groups too: frame K of the file is slot K, due at K periods (semantics section 4)."""
    text = "cpu(0): { 1, dinc(0,99) } cpu(1): { 2, drnd(1) } { 3 }"
    program = compile_source(Source("t", text.encode()), seed=7).program
    plan = make_schedule(program, workers=2, count=17)
    found = [locate(plan, slot) for slot in range(17)]
    wanted = [reference.frame(program, *pick(program, *at)) for at in found if at is not None]
    path = tmp_path / "x.pcap"
    for pace, period in ((("-t", "1ms"), 10**6), ((), 1)):
        assert pktgen("send", "-o", str(path), "-n", "17", "-P", "2", "-E", "7", *pace, text).returncode == 0
        records = read_pcap(path)[1]
        assert [frame for _, frame in records] == wanted
        assert [t for t, _ in records] == [slot * period for slot in range(17)]


def test_groups_of_an_endless_file_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    text = "cpu(0): { 1 } { 2 }"
    run = pktgen("send", "-o", str(path), "--duration", "6ms", "-b", "1kpps", "-P", "2", "-E", "7", text)
    assert run.returncode == 0
    found = [(t // 10**6, frame[0]) for t, frame in read_pcap(path)[1]]
    assert found == [(0, 1), (1, 2), (2, 1), (3, 2), (4, 1), (5, 2)]


@pytest.mark.parametrize("backend", ["mmsg"])
def test_groups_are_paced_evenly(lab: Lab, backend: str) -> None:
    """Two groups at 100 pps together: packets leave one by one, in turn."""
    capture = Capture(lab)
    text = f"cpu(0): {{ fill(1,60) }} {TEST_FRAME}"
    run = send(lab, "-n", "40", "-b", "100pps", "-P", "1", "--backend", backend, "--json", text)
    assert run.json["end"]["achieved_pps"] == pytest.approx(100, rel=0.05)
    assert len(capture.frames(40)) == 40


def random_programs(count: int) -> list[tuple[Program, int]]:
    """Programs with selectors, weights and random order, and a number of workers."""
    dice = random.Random(3)
    found = []
    for _ in range(count):
        packets = []
        for i in range(dice.randint(1, 5)):
            first, last = sorted((dice.randint(0, 3), dice.randint(0, 3)))
            ops = (Op(OpCode.COUNTER, 1, 8, 0, MASK64, 1), Op(OpCode.BYTES, 9, dice.randint(1, 7)))
            workers = None if dice.random() < 0.5 else (first, last)
            template = bytes([i]) + bytes(dice.randint(16, 40))
            packets.append(Packet(template, ops, (), workers, dice.choice([1, 1, 2, 5])))
        found.append((Program(tuple(packets), dice.getrandbits(64), dice.random() < 0.4), dice.randint(1, 4)))
    return found


@pytest.mark.parametrize("count", [150, 2**62])
def test_the_send_loop_walks_the_schedule(tmp_path: Path, count: int) -> None:
    """What `transmit` sends for each worker is what `schedule.pick` and the reference say, far along the run too."""
    for program, workers in random_programs(60):
        plan = make_schedule(program, workers=workers, count=count)
        for worker in range(workers):
            groups, turns = pack_worker(program, plan, worker, None)
            mine = [group for group in plan.groups if worker in group.workers]
            moved, wanted, following = b"", [], []
            for i, group in enumerate(mine):
                fields = list(GROUP_RECORD.unpack_from(groups, i * GROUP_RECORD.size))
                fields[1] += max(0, (group.count - fields[1]) // fields[3] - 20) * fields[3] if count > 150 else 0
                following.append(fields[1])
                moved += GROUP_RECORD.pack(*fields)
            while any(slot < (group.count or 0) for group, slot in zip(mine, following)):
                for i, group in enumerate(mine):
                    if following[i] < (group.count or 0):
                        wanted.append(reference.frame(program, *pick(program, group, following[i])))
                        following[i] += len(group.workers)
            path = tmp_path / "x.pcap"
            tx = _fastpath.TxPcap(path, max_length=program.max_length)
            memory = mmap.mmap(-1, 2 * COUNTERS_WORDS * 8)
            memory[:8] = struct.pack("=Q", 1)
            key = field_key(program.seed, ORDER_PACKET, 0)
            fast = _fastpath.Program(pack(program), random_order=program.random_order, order_key=key)
            assert _fastpath.transmit(fast, tx, moved, turns, memory, 0) == Reason.SENT
            tx.close()
            assert [frame for _, frame in read_pcap(path)[1]] == wanted


def test_a_socket_can_be_used_for_another_program(tmp_path: Path) -> None:
    tx = _fastpath.TxPcap(tmp_path / "x.pcap", max_length=20)
    for text in ('{ "aaaa", drnd(1) }', '{ "bbbb", drnd(1) }'):
        program = compile_source(Source("t", text.encode()), seed=7).program
        memory = mmap.mmap(-1, 2 * COUNTERS_WORDS * 8)
        memory[:8] = struct.pack("=Q", 1)
        groups, turns = pack_worker(program, make_schedule(program, workers=1, count=2), 0, None)
        _fastpath.transmit(_fastpath.Program(pack(program)), tx, groups, turns, memory, 0)
    tx.close()
    assert [frame[:4] for _, frame in read_pcap(tmp_path / "x.pcap")[1]] == [b"aaaa", b"aaaa", b"bbbb", b"bbbb"]


def test_damaged_schedules_are_refused(tmp_path: Path) -> None:
    program = compile_source(Source("t", b"{ 1 }"), seed=7).program
    fast = _fastpath.Program(pack(program))
    tx = _fastpath.TxNull(max_length=20)
    groups, turns = pack_worker(program, make_schedule(program, workers=1, count=2), 0, None)
    memory = mmap.mmap(-1, 2 * COUNTERS_WORDS * 8)
    for field, value in ((3, 0), (5, 0), (8, 2**32 - 1), (9, 0), (9, 2)):
        fields = list(GROUP_RECORD.unpack(groups))
        fields[field] = value
        with pytest.raises(ValueError, match="damaged"):
            _fastpath.transmit(fast, tx, GROUP_RECORD.pack(*fields), turns, memory, 0)
    with pytest.raises(ValueError, match="damaged"):
        _fastpath.transmit(fast, tx, groups, struct.pack("=III", 1, 0, 1), memory, 0)
    with pytest.raises(ValueError, match="too small"):
        _fastpath.transmit(fast, tx, groups, turns, memory, 1)


@pytest.mark.parametrize("backend", ON_LINKS)
def test_reopening_at_once_works_ten_times(lab: Lab, backend: str) -> None:
    index = lab.netlink(lab.tx, lambda ip: ip.link_lookup(ifname="v0")[0])
    for i in range(10):
        assert transmit_here(lab, backend, index, NUMBERED, 500) == 500
        assert lab.counters(lab.rx, "v1")["rx_packets"] == 500 * (i + 1)


def transmit_here(lab: Lab, backend: str, ifindex: int, text: str, count: int, **options: int) -> int:
    """Send from this process, in a thread that has entered lab.tx; how many frames were accepted."""
    program = compile_source(Source("t", text.encode()), seed=7).program
    plan = make_schedule(program, workers=1, count=count)
    groups, turns = pack_worker(program, plan, 0, None)
    memory = mmap.mmap(-1, 2 * COUNTERS_WORDS * 8)
    memory[:8] = struct.pack("=Q", 1)
    found: list[object] = []

    def work() -> None:
        try:
            enter(lab.tx)
            timestamps = options.pop("timestamps", 0)
            tx = _fastpath.TX_BACKENDS[backend]("v0", ifindex, max_length=program.max_length, **options)
            if timestamps:
                with socket.socket(fileno=os.dup(tx.fileno())) as same:
                    same.setsockopt(socket.SOL_SOCKET, 37, 2 | 16)  # SO_TIMESTAMPING: TX_SOFTWARE | SOFTWARE
                    same.setsockopt(263, 17, 16)  # SOL_PACKET, PACKET_TIMESTAMP
            reason = _fastpath.transmit(_fastpath.Program(pack(program)), tx, groups, turns, memory, 0)
            tx.close()
            found.append(reason)
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [Reason.SENT], found
    accepted: int = struct.unpack_from("=Q", memory, COUNTERS_WORDS * 8)[0]
    return accepted


@pytest.mark.parametrize("slots", [1, 2, 3, 8, 100, 256, 4096])
@pytest.mark.parametrize("length", [60, 1514])
def test_a_ring_of_any_size_loses_and_reorders_nothing(lab: Lab, slots: int, length: int) -> None:
    count = 3 * slots + 1000
    index = lab.netlink(lab.tx, lambda ip: ip.link_lookup(ifname="v0")[0])
    text = f"{{ fill(0xff,12), c16(0x88b5), drnd(40), fill(0x5a,{length - 54}) }}"
    capture = Capture(lab)
    assert transmit_here(lab, "ring", index, text, count, slots=slots) == count
    assert capture.frames(count) == expected(text, count)[0]


def test_timestamp_bits_do_not_stall_a_ring(lab: Lab) -> None:
    index = lab.netlink(lab.tx, lambda ip: ip.link_lookup(ifname="v0")[0])
    assert transmit_here(lab, "ring", index, NUMBERED, 500, slots=4, timestamps=1) == 500
    assert lab.counters(lab.rx, "v1")["rx_packets"] == 500
    for stamp in (1 << 29, 1 << 31, 3 << 29):
        assert _fastpath.ring_slot_is_free(stamp)
        for busy in (1, 2, 4):
            assert not _fastpath.ring_slot_is_free(stamp | busy)


@pytest.mark.parametrize("length", [14, 60, 1514, 9014, 65_550])
@pytest.mark.parametrize("slots", [1, 2, 3, 5, 16, 256])
def test_ring_geometry_is_what_the_kernel_takes(length: int, slots: int) -> None:
    size, block, blocks = _fastpath.ring_geometry(length, slots)
    assert size % 16 == 0
    assert size >= length + 34
    assert block % 4096 == 0
    assert block % size == 0
    assert block // size * blocks == slots


@pytest.mark.parametrize("backend", ON_LINKS)
def test_jumbo_frames_arrive_whole(backend: str) -> None:
    with Lab(mtu=9000) as lab:
        for length in (4082, 4096, 4097, 9014):
            text = f"{{ fill(0xff,12), c16(0x88b5), rnd({length - 15}), dinc(0,255) }}"
            capture = Capture(lab)
            run = send(lab, "-n", "20", "-P", "1", "-E", "7", "--backend", backend, text)
            assert run.code == 0, run.stderr
            assert capture.frames(20) == expected(text, 20)[0]


@pytest.mark.parametrize("backend", ON_LINKS)
@pytest.mark.parametrize(("text", "numbers"), [
    ("{ fill(1,13) }", ("13", "14")),
    ("{ fill(1,60) } { fill(1,3000) }", ("packet 1", "3000", "1500", "1514")),
    ("{ fill(1,12), c16(0x88a8), fill(1,1504) }", ("1518", "1514")),
    ("{ fill(1,12), 0x81, dinc(0,3), fill(1,1504) }", ("1518", "1514")),
    ("{/* nothing */}", ("0 bytes",)),
])  # fmt: skip
def test_frames_that_the_link_cannot_take_are_refused_first(
    lab: Lab, backend: str, text: str, numbers: tuple[str, ...]
) -> None:
    run = send(lab, "-n", "5", "--backend", backend, text)
    assert run.code == 2
    assert all(number in run.stderr for number in numbers)
    assert lab.counters(lab.tx, "v0")["tx_packets"] == 0


@pytest.mark.parametrize("backend", ON_LINKS)
def test_four_bytes_more_for_a_tag(lab: Lab, backend: str) -> None:
    run = send(lab, "-n", "5", "--backend", backend, "{ fill(1,12), c16(0x8100), fill(1,1504) }")
    assert run.code == 0, run.stderr
    assert lab.counters(lab.rx, "v1")["rx_packets"] == 5


def test_the_kernel_decides_when_asked(lab: Lab) -> None:
    run = send(lab, "-n", "5", "-P", "1", "--no-size-check", "--json", "{ fill(1,60) } { fill(1,3000) }")
    assert run.code == 1
    end = run.json["end"]
    assert (end["tx_packets"], end["abandoned_packets"], end["refused"]) == (3, 2, {"EMSGSIZE": 2})
    assert "EMSGSIZE" in end["message"]


def tc(lab: Lab, *words: str) -> str:
    """`tc` on v0; its output."""
    at = words.index("qdisc") + 2
    command = [need("tc"), *words[:at], "dev", "v0", *words[at:]]
    run = lab.popen(lab.tx, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = run.communicate(timeout=10)
    assert run.returncode == 0, errors
    return str(output)


def qdisc_packets(lab: Lab) -> int:
    text = tc(lab, "-s", "qdisc", "show")
    return sum(int(n) for n in re.findall(r"Sent \d+ bytes (\d+) pkt", text))


@pytest.mark.parametrize("backend", ON_LINKS)
def test_qdisc_sees_frames_only_with_q(lab: Lab, backend: str) -> None:
    tc(lab, "qdisc", "add", "root", "tbf", "rate", "1gbit", "burst", "1mb", "latency", "1s")
    before = qdisc_packets(lab)
    assert send(lab, "-n", "100", "--backend", backend, TEST_FRAME).code == 0
    assert qdisc_packets(lab) == before
    assert send(lab, "-n", "100", "-q", "--backend", backend, TEST_FRAME).code == 0
    assert qdisc_packets(lab) == before + 100


@pytest.mark.parametrize("backend", ON_LINKS)
def test_a_second_socket_sees_frames_only_with_q(lab: Lab, backend: str) -> None:
    for options, seen in (((), 0), (("-q",), 50)):
        tap = Capture(lab, lab.tx, "v0")
        assert send(lab, "-n", "50", "--backend", backend, *options, TEST_FRAME).code == 0
        assert len(tap.frames()) == seen
    assert lab.counters(lab.tx, "v0")["rx_packets"] == 0


@pytest.mark.parametrize("backend", ON_LINKS)
def test_a_slow_qdisc_pushes_back_and_nothing_is_lost(lab: Lab, backend: str) -> None:
    """tbf takes 20 Mbit/s and queues little: ENOBUFS or EAGAIN are counted, every frame arrives once."""
    tc(lab, "qdisc", "add", "root", "tbf", "rate", "20mbit", "burst", "10kb", "limit", "30kb")
    text = "{ fill(0xff,12), c16(0x88b5), drnd(100), fill(0,886) }"
    capture = Capture(lab)
    run = send(lab, "-n", "1500", "-q", "-P", "1", "-E", "7", "--backend", backend, "--json", text)
    assert run.code == 0, run.stderr
    frames = capture.frames(1500)
    assert frames == expected(text, 1500)[0]
    assert run.json["end"]["tx_packets"] == 1500
    assert sum(run.json["end"]["refused"].values()) > 0


@pytest.mark.parametrize("backend", ON_LINKS)
def test_the_header_option_is_set_on_rings_and_protocol_is_zero(lab: Lab, backend: str) -> None:
    index = lab.netlink(lab.tx, lambda ip: ip.link_lookup(ifname="v0")[0])
    found: list[tuple[int, int, int]] = []

    def work() -> None:
        enter(lab.tx)
        tx = _fastpath.TX_BACKENDS[backend]("v0", index, max_length=60)
        with socket.socket(fileno=os.dup(tx.fileno())) as same:
            protocol = same.getsockname()[1]
            found.append((protocol, same.getsockopt(263, 19), same.getsockopt(263, 20)))
        tx.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(0, 1 if backend == "ring" else 0, 1)]


@pytest.mark.parametrize("backend", ON_LINKS)
@pytest.mark.parametrize(("rate", "count"), [("100pps", 101), ("10kpps", 10_001)])
def test_pace(lab: Lab, backend: str, rate: str, count: int) -> None:
    run = send(lab, "-n", str(count), "-b", rate, "--backend", backend, "--json", TEST_FRAME)
    assert run.code == 0, run.stderr
    end, asked = run.json["end"], run.json["start"]["requested"]["pps"]
    assert end["tx_packets"] == count
    assert end["achieved_pps"] == pytest.approx(asked, rel=0.05)


@pytest.mark.parametrize("backend", [*ON_LINKS, "null"])
def test_duration_and_rate_end_at_the_last_slot_inside(lab: Lab, backend: str) -> None:
    run = send(lab, "--duration", "0.5s", "-t", "10ms", "--backend", backend, "--json", TEST_FRAME)
    assert run.code == 0, run.stderr
    assert run.json["end"]["tx_packets"] == 50
    assert run.took < 2


def test_file_times_follow_the_rate(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    assert pktgen("send", "-o", str(path), "-n", "4", "-b", "3pps", "-E", "7", "{ 1 }").returncode == 0
    assert [t for t, _ in read_pcap(path)[1]] == [0, 333_333_333, 666_666_666, 10**9]
    timed = pktgen("send", "-o", str(path), "--duration", "1s", "-b", "300B", "-E", "7", "{ fill(1,100) }")
    assert timed.returncode == 0
    assert [t for t, _ in read_pcap(path)[1]] == [0, 333_333_333, 666_666_666]
    assert pktgen("send", "-o", str(path), "-n", "1", "{ 1 }").returncode == 0
    assert read_pcap(path)[1][0][0] > 1.7e18  # without a seed a file begins now


def test_mean_size_paces_mixed_frames() -> None:
    assert parse_rate("50Mbit").packet_period(Fraction(60 + 1514, 2), None) == Fraction(787 * 8 * 10**9, 50 * 10**6)


def test_file_of_large_frames_and_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    assert pktgen("send", "-o", str(path), "-n", "3", "-E", "1", "{ fill(7,300000) } { 1 }").returncode == 0
    assert [len(f) for _, f in read_pcap(path)[1]] == [300_000, 1, 300_000]
    assert pktgen("send", "-o", str(path), "-n", "4", "-P", "1", "cpu(1): {1}").returncode == 0
    assert read_pcap(path) == (1, [])


def test_a_full_disk_ends_with_whole_records(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(mount)], check=True)
    try:
        run = pktgen("send", "-o", str(mount / "x.pcap"), "-n", "1M", "--json", "{ fill(1,1000) }")
        end = json.loads(run.stdout)["end"]
        assert run.returncode == 1
        assert "No space left" in end["message"]
        assert len(read_pcap(mount / "x.pcap")[1]) == end["tx_packets"] > 1000
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_counters_go_beyond_32_bits(tmp_path: Path) -> None:
    run = pktgen("send", "-o", "pcap:/dev/null", "-n", "300000", "--json", "{ fill(1,16000) }")
    assert json.loads(run.stdout)["end"]["tx_bytes_l2"] == 4_800_000_000


def test_random_bytes_differ_between_workers_and_runs(lab: Lab) -> None:
    text = "{ fill(0xff,12), c16(0x88b5), drnd(16) }"
    seen: list[bytes] = []
    for _ in range(2):
        capture = Capture(lab)
        assert send(lab, "-n", "40", "-P", "2", text).code == 0
        seen += capture.frames(40)
    assert len(set(seen)) == 80


@pytest.mark.parametrize("kind", ["macvlan", "bridge"])
def test_frames_leave_through_the_named_link_only(lab: Lab, kind: str) -> None:
    """A link on top of v0: its own counter moves by n, and so many arrive."""

    def extra(ip: Any) -> None:
        index = ip.link_lookup(ifname="v0")[0]
        ip.link("add", ifname="x0", kind=kind, **({"link": index} if kind == "macvlan" else {}))
        if kind == "bridge":
            ip.link("set", index=index, master=ip.link_lookup(ifname="x0")[0])

    lab.netlink(lab.tx, extra)
    lab.up(lab.tx, "x0")
    run = Sender(lab, "send", "-o", "x0", "-n", "25", "--json", TEST_FRAME).finish()
    assert run.code == 0, run.stderr
    assert run.json["end"]["link"] == {"tx_packets": 25, "matches": True}
    assert wait_until(lambda: lab.counters(lab.rx, "v1")["rx_packets"] >= 25)


def test_loopback(lab: Lab) -> None:
    lab.up(lab.tx, "lo")
    run = Sender(lab, "send", "-o", "lo", "-n", "10", "--json", TEST_FRAME).finish()
    assert run.code == 0, run.stderr
    assert run.json["end"]["tx_packets"] == 10


def test_two_hundred_short_runs(lab: Lab) -> None:
    index = lab.netlink(lab.tx, lambda ip: ip.link_lookup(ifname="v0")[0])
    for i in range(200):
        count = random.Random(i).randint(1, 40)
        assert transmit_here(lab, "ring", index, NUMBERED, count, slots=8) == count


def test_sockets_are_distinct(lab: Lab) -> None:
    """Each worker opens its own: a capture of the namespace's packet sockets shows two."""
    run = Sender(lab, "send", "-o", "v0", "-P", "2", "-b", "100pps", "-n", "100", TEST_FRAME)
    quiet = socket_in(lab.tx, "v0", 0)
    try:
        assert wait_until(lambda: len(packet_sockets(lab)) >= 3)
    finally:
        quiet.close()
        run.finish()


def packet_sockets(lab: Lab) -> list[str]:
    found: list[str] = []

    def work() -> None:
        enter(lab.tx)
        found.extend(Path("/proc/thread-self/net/packet").read_text().splitlines()[1:])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found
