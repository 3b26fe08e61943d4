"""Fuzzes lexer, parser and compiler: only ConfigError may come out, and what compiles must run.

`make fuzz T=60`. Seeds are the golden vectors and errors; libFuzzer's options may follow.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports():
    from pktgen_cli import reference
    from pktgen_cli.compiler import compile_source
    from pktgen_cli.diagnostics import Source
    from pktgen_cli.errors import ConfigError
    from pktgen_cli.packing import pack
    from pktgen_cli.program import listing

GOLDEN = Path(__file__).parent.parent / "golden"
LARGEST_RUN = 4096
WORDS = [
    "{", "}", "(", ")", ",", ";", ":", "=", "-", "+", "*", "/", "%", "&", "|", "^", "<<", ">>", "#", "//",
    "/*", "*/", "0x", "0b", "'", '"', "\\x41", "cpu(", "fill(", "rnd(", "drnd(", "seqinc(", "seqdec(",
    "dinc(", "ddec(", "csumip(", "csumudp(", "csumtcp6(", "csumicmp6(", "const8(", "c16(", "c32(", "c64(",
    "18446744073709551615", "9223372036854775808",
]  # fmt: skip


def one_input(data: bytes) -> None:
    source = Source("fuzz", data)
    try:
        program = compile_source(source, seed=1, strict=bool(data[:1] == b"S")).program
    except ConfigError as refused:
        if not refused.render().startswith("fuzz:"):
            raise
        return
    pack(program)
    for number, packet in enumerate(program.packets[:4]):
        if packet.max_length <= LARGEST_RUN:
            assert packet.min_length <= len(reference.frame(program, number, 12345)) <= packet.max_length
            assert list(listing(program, range(number, number + 1)))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("vectors.jsonl", "errors.jsonl"):
            for line in (GOLDEN / name).read_text().splitlines():
                seed = json.loads(line)
                (Path(folder) / seed["id"]).write_text(seed["cfg"])
        words = Path(folder) / "words.dict"
        words.write_text("".join('"' + "".join(f"\\x{ord(c):02x}" for c in word) + '"\n' for word in WORDS))
        options = [f"-dict={words}", "-max_len=4096", "-timeout=20", f"-artifact_prefix={tempfile.gettempdir()}/"]
        atheris.Setup([sys.argv[0], folder, *options, *sys.argv[1:]], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
