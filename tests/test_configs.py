"""Every file in configs/ compiles without a warning, names its command, and tshark finds no fault in it."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import need, pktgen

CONFIGS = sorted((Path(__file__).parent.parent / "configs").glob("*.cfg"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.name)
def test_config(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    command = re.search(r"^ \* (pktgen send .*)$", text, re.M)
    assert text.startswith("/* ")
    assert command is not None
    words = shlex.split(command[1])
    words[words.index("-o") + 1] = str(tmp_path / "x.pcap")
    words[words.index("-i") + 1] = str(path)
    for option in ("--duration", "-b", "-n"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    run = pktgen(*words[1:], "-n", "600", "--strict")
    assert run.returncode == 0, run.stderr
    assert run.stderr.count(b"warning") == 0


@pytest.mark.oracle
@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.name)
def test_tshark_finds_no_fault(path: Path, tmp_path: Path) -> None:
    capture = tmp_path / "x.pcap"
    assert pktgen("send", "-o", str(capture), "-n", "600", "-P", "2", "-i", str(path)).returncode == 0
    assert bad_frames(capture) == []


def bad_frames(capture: Path) -> list[str]:
    """What tshark says of checksums that are wrong, and of frames that it cannot take apart."""
    checks = [f"-o{p}.check_checksum:TRUE" for p in ("ip", "udp", "tcp")]
    sums = " or ".join(f"{p}.checksum.status == 0" for p in ("ip", "udp", "tcp", "icmpv6"))
    wrong = f"_ws.malformed or {sums}"
    run = subprocess.run(
        [
            need("tshark"), "-n", "-r", str(capture), *checks, "-Y", wrong,
            "-d", "udp.port==0-65535,data",  # random ports are not the protocols that they may happen to name
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout.splitlines()


@pytest.mark.oracle
def test_the_oracle_catches_a_bad_checksum(tmp_path: Path) -> None:
    capture = tmp_path / "x.pcap"
    text = (Path(__file__).parent.parent / "configs/udp.cfg").read_text().replace("csumudp(14, 34)", "0x12, 0x34")
    assert pktgen("send", "-o", str(capture), "-n", "3", text).returncode == 0
    assert len(bad_frames(capture)) == 3
