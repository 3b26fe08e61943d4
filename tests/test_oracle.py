"""trafgen itself as the oracle of the byte-level language, and scapy of the checksums."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import need
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_language import frames

NUMBERS = st.one_of(
    st.integers(0, 255).map(str), st.integers(0, 255).map(hex), st.integers(0, 255).map(lambda n: f"0{n:o}"),
    st.integers(0, 255).map(bin), st.sampled_from("acdefgz").map(lambda c: f"'{c}'"),
)  # fmt: skip
SMALL = st.integers(1, 20)
BYTE = st.integers(0, 255)


@st.composite
def dincs(draw: st.DrawFn) -> str:
    low, high = sorted((draw(BYTE), draw(BYTE)))
    return f"dinc({low}, {high}, {draw(BYTE)})"


@st.composite
def expressions(draw: st.DrawFn) -> str:
    operators = st.sampled_from(["+", "-", "*", "&", "|", "^"])
    text = str(draw(BYTE))
    for _ in range(draw(st.integers(0, 4))):
        text = f"({text})" if draw(st.booleans()) else text
        text += f"{draw(operators)}{draw(BYTE)}"
    return f"c{draw(st.sampled_from([8, 16, 32, 64]))}({text})"


ELEMENTS = st.one_of(
    NUMBERS,
    st.builds(lambda v, n: f"fill({v}, {n})", BYTE, SMALL),
    st.builds(lambda v, n, s: f"seqinc({v}, {n}, {s})", BYTE, SMALL, BYTE),
    st.builds(lambda v, n, s: f"seqdec({v}, {n}, {s})", BYTE, SMALL, BYTE),
    st.text("abcxyz 0123#;/*", min_size=1, max_size=12).map(lambda t: f'"{t}"'),
    dincs(),
    expressions(),
)
PACKETS = st.lists(ELEMENTS, min_size=1, max_size=8).map(lambda e: "{ " + ", ".join(e) + " }")


def trafgen(text: str, count: int, folder: Path) -> list[str]:
    """The frames that trafgen writes into a capture file, as hex."""
    program = need("trafgen")
    config, capture = folder / "t.cfg", folder / "t.pcap"
    config.write_text(text)
    capture.unlink(missing_ok=True)
    subprocess.run(
        [program, "--no-sock-mem", "-o", str(capture), "-n", str(count), "-P", "1", "-c", str(config)],
        capture_output=True, timeout=20, check=True, cwd=folder,
    )  # fmt: skip
    data, at, found = capture.read_bytes(), 24, []
    while at < len(data):
        size = struct.unpack_from("=I", data, at + 8)[0]
        found.append(data[at + 16 : at + 16 + size].hex())
        at += 16 + size
    return found


@pytest.mark.oracle
@given(st.lists(PACKETS, min_size=1, max_size=3))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_trafgen_writes_the_same_frames(tmp_path: Path, packets: list[str]) -> None:
    text = "\n".join(packets)
    assert frames(text, 7) == trafgen(text, 7, tmp_path)


@pytest.mark.oracle
@given(st.binary(min_size=0, max_size=64), st.integers(0, 2**16 - 1))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_trafgen_sums_the_same(tmp_path: Path, payload: bytes, port: int) -> None:
    """IPv4 and UDP or TCP checksums over constant and counting bytes."""
    length = len(payload)
    data = ",".join(map(str, payload)) + "," if payload else ""
    for protocol, head, name in (
        (17, f"c16({port}), dinc(0,255), 9, c16({length + 8})", "csumudp"),
        (6, f"c16({port}), dinc(0,255), 9, c32(1), c32(2), 0x50, 2, c16(100)", "csumtcp"),
    ):
        size = 20 + length + (8 if protocol == 17 else 20)
        text = (
            f"{{ fill(1,12), c16(0x800), 0x45, 0, c16({size}), c16(7), 0x40, 0, 64, {protocol}, csumip(14,33), "
            f"10,0,0,dinc(1,9), 10,0,0,2, {head}, {name}(14,34), {'0,0,' if protocol == 6 else ''} {data} }}"
        )
        ours, theirs = frames(text, 3), trafgen(text, 3, tmp_path)
        if protocol == 17:  # a computed 0 is ffff here (RFC 768), 0 there
            theirs = [t[:80] + "ffff" + t[84:] if t[80:84] == "0000" else t for t in theirs]
        assert ours == theirs


@given(st.binary(max_size=64), st.integers(0, 2**64 - 1))
@settings(max_examples=60)
def test_scapy_finds_every_checksum_right(payload: bytes, seed: int) -> None:
    from scapy.layers.inet import IP, TCP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Ether

    data = "".join(f"{b}," for b in payload)
    n = len(payload) + 6
    v4 = "fill(1,12), c16(0x800), 0x45, 0, c16({size}), drnd(2), 0x40, 0, 64, {p}, csumip(14,33), drnd(4), drnd(4)"
    v6 = "fill(1,12), c16(0x86dd), 0x60, drnd(1), drnd(2), c16({size}), {p}, 64, drnd(16), drnd(16)"
    udp, tcp = f"drnd(2), dinc(0,9), 9, c16({n + 8})", "drnd(4), drnd(4), drnd(4), 0x50, 2, drnd(2)"
    for text in (
        f"{{ {v4.format(size=28 + n, p=17)}, {udp}, csumudp(14,34), {data} drnd(5), dinc(0,9) }}",
        f"{{ {v4.format(size=40 + n, p=6)}, {tcp}, csumtcp(14,34), 0, 0, {data} drnd(5), dinc(0,9) }}",
        f"{{ {v6.format(size=8 + n, p=17)}, {udp}, csumudp6(14,54), {data} drnd(5), dinc(0,9) }}",
        f"{{ {v6.format(size=20 + n, p=6)}, {tcp}, csumtcp6(14,54), 0, 0, {data} drnd(5), dinc(0,9) }}",
    ):
        raw = bytes.fromhex(frames(text, 2, seed=seed)[1])
        packet: Any = Ether(raw)
        for layer in (IP, UDP, TCP):
            if packet.haslayer(layer):
                del packet[layer].chksum
        assert packet.haslayer(IP) or packet.haslayer(IPv6)
        again = bytes(packet)
        assert again[: len(raw)] == raw or raw[40:42] == b"\xff\xff"
