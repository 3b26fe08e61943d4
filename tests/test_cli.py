"""The command line as users type it: descriptions, options, exit codes, messages, both streams."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from conftest import PKTGEN, TEST_FRAME, Sender, golden, need, pktgen, send, terminal

from pktgen_cli.lab import Lab

SCHEMA = json.loads((Path(__file__).parent.parent / "pktgen_cli/report/schema.json").read_text())


def text(data: bytes) -> str:
    return data.decode()


def show(*arguments: str, stdin: bytes | None = None) -> str:
    run = pktgen("show", "--hex", *arguments, stdin=stdin)
    assert run.returncode == 0, run.stderr
    return text(run.stdout)


def refused(*arguments: str, code: int = 2, stdin: bytes | None = None) -> str:
    run = pktgen(*arguments, stdin=stdin)
    assert run.returncode == code, run
    assert run.stdout == b""
    assert b"Traceback" not in run.stderr
    return text(run.stderr)


def unprivileged() -> list[str]:
    """What to put before a command to run it without privileges: in a user namespace where we are nobody."""
    if os.geteuid() != 0:
        return []
    prefix = [need("unshare"), "--user"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("user namespaces are not allowed here")
    return prefix


# where a description comes from


def test_description_from_words_file_and_stdin(tmp_path: Path) -> None:
    path = tmp_path / "a.cfg"
    path.write_text("{ 7, 7 }")
    for arguments, stdin in (
        (("{ 7, 7 }",), None), (("{", "7,", "7", "}"), None), (("-i", str(path)), None), (("-c", str(path)), None),
        (("--in", str(path)), None), (("--conf", str(path)), None), ((str(path),), None), (("-i", "-"), b"{ 7, 7 }"),
        (("-c", "-"), b"{ 7, 7 }"), (("-i", "nofile", "{ 7, 7 }"), None),
    ):  # fmt: skip
        assert "07 07" in show(*arguments, stdin=stdin), arguments


def test_long_descriptions_and_pipes(tmp_path: Path) -> None:
    for count in (100, 2000):
        assert "00 00" in show("{ " + "0, " * count + "}")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([*PKTGEN, "show", "--hex", str(fifo)], stdout=subprocess.PIPE) as child:
        fifo.write_text("{ 7, 7 }")
        assert b"07 07" in child.communicate(timeout=10)[0]


def test_a_file_whose_name_has_braces_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("{ 1 }").write_text("{ 9 }")
    assert "09" in show("{ 1 }")


def test_missing_braces_are_asked_about() -> None:
    message = refused("show", "fill(1,4)")
    assert "no file named 'fill(1,4)'" in message
    assert "are braces missing? Write '{ fill(1,4) }'" in message


def test_bad_inputs_have_one_clear_line(tmp_path: Path) -> None:
    assert "No such file" in refused("show", "-i", "nofile.cfg")
    assert "Is a directory" in refused("show", "-i", str(tmp_path))
    assert "no description" in refused("show")
    binary = tmp_path / "b.cfg"
    binary.write_bytes(bytes(range(256)) * 20)
    message = refused("show", "-i", str(binary))
    assert message.count("error:") <= 26
    assert f"{binary}:1:1: error" in message


def test_stdin_that_is_closed() -> None:
    run = subprocess.run([*PKTGEN, "show", "-i", "-"], capture_output=True, preexec_fn=lambda: os.close(0), check=False)
    assert run.returncode == 2
    assert b"closed" in run.stderr or b"Bad file descriptor" in run.stderr


# show


def test_show_prints_hex_and_program() -> None:
    run = pktgen("show", "-E", "7", '{ "abc", dinc(0,9), csumip(0,3) }')
    assert run.returncode == 0
    out = text(run.stdout)
    assert "61 62 63 01" in out
    assert "counter 0..9 step 1" in out
    assert "checksum 0..3, base" in out


def test_show_index_is_the_slot(tmp_path: Path) -> None:
    description = "{ dinc(0,255), drnd(4) } { 2 }"
    path = tmp_path / "x.pcap"
    assert pktgen("send", "-o", str(path), "-n", "301", "-E", "7", description).returncode == 0
    records = path.read_bytes()
    at, frames = 24, []
    while at < len(records):
        size = int.from_bytes(records[at + 8 : at + 12], sys.byteorder)
        frames.append(records[at + 16 : at + 16 + size])
        at += 16 + size
    for slot in (0, 1, 2, 299, 300):
        assert frames[slot].hex(" ") in show("-E", "7", "--index", str(slot), description)
    assert frames[300].hex(" ") in show("-E", "7", "--packet", "0", "--index", "150", description)
    assert "no such slot" in refused("show", "-n", "300", "--index", "300", description)
    assert "has 2 packets" in refused("show", "--packet", "2", description)


def test_show_index_follows_selectors() -> None:
    description = "cpu(0): {1} {2}"
    assert "packet 1" in show("-P", "2", "-n", "4", "--index", "2", description)
    assert "packet 0" in show("-P", "1", "-n", "4", "--index", "2", description)


# send: usage


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-n", "abc"), "does not begin with a number"),
        (("-n", "-1"), "does not begin with a number"),
        (("-n", "2x"), "is no suffix"),
        (("-b", "1kb"), "kbit or kB"),
        (("-b", "1"), "a unit is missing"),
        (("-t", "1parsec"), "unit 'parsec' is not known"),
        (("-P", "x"), "a number of workers"),
        (("-P", "0-99999"), "more than 4096"),
        (("-P", "4000-4001"), "cannot be used here"),
        (("-P", "2-1"), "counts backwards"),
        (("-E", "x"), "the seed is a number"),
        (("-E", "-1"), "the seed is 0"),
        (("-S", "1MB"), "use KiB, MiB or GiB"),
        (("-S", "0.1KiB"), "1 byte"),
        (("--duration", "0"), "end before it starts"),
        (("--interval", "0"), "at least 1ms"),
        (("-u", "no-such-user"), "there is no user"),
        (("-u", "4294967295"), "no user or group number"),
        (("-u", "99999999999"), "no user or group number"),
        (("-g", "²"), "there is no group"),
        (("-n", "9" * 5000), "too long"),
        (("-t", "9" * 5000), "too long"),
        (("-P", "9" * 5000), "a number of workers"),
        (("-E", "9" * 5000), "the seed is 0"),
        (("-p",), "the preprocessor is not there yet"),
        (("-D", "X=1"), "the preprocessor is not there yet"),
        (("-s", "127.0.0.1"), "smoke test is not there yet"),
        (("-R",), "802.11"),
        (("--json", "--json-stream"), "exclude each other"),
        (("-o", "x.cfg"), "writing descriptions"),
        (("-o", "pcap:"), "needs a file name"),
        (("--backend", "ring"), "sends on links"),
        (("-z",), "No such option"),
        (("-n",), "requires an argument"),
        (("-o", "/nonexistent/x.pcap"), "No such file or directory"),
    ],
)
def test_usage_errors(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    output = () if "-o" in arguments else ("-o", str(tmp_path / "x.pcap"))
    found = refused("send", *output, "-n", "1", *arguments, "{ 1 }") if arguments != ("-n",) else refused("send", "-n")
    assert message in found


def test_no_output_and_unknown_link() -> None:
    assert "no output" in refused("send", "{ fill(1,60) }")
    message = refused("send", "-o", "vetg0", "{ fill(1,60) }")
    assert "no link named 'vetg0'" in message
    assert "hint:" in message
    assert "did you mean lo?" in refused("send", "-o", "loo", "{ fill(1,60) }")


def test_a_wrong_link_is_named_before_privileges() -> None:
    command = [*unprivileged(), *PKTGEN, "send", "-n", "1", "{ fill(1,60) }", "-o"]
    run = subprocess.run([*command, "vetg0"], capture_output=True, check=False)
    assert run.returncode == 2
    assert b"no link named 'vetg0'" in run.stderr
    run = subprocess.run([*command, "lo"], capture_output=True, check=False)
    assert run.returncode == 4
    assert b"CAP_NET_RAW" in run.stderr
    assert b"Traceback" not in run.stderr


def test_a_bad_description_sends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    assert "division by zero" in refused("send", "-o", str(path), "-n", "1", "{ 1 } { c16(1/0) }")
    assert not path.exists()


def test_every_letter_of_trafgen_is_known() -> None:
    """Each letter is an option, and --help says what becomes of it."""
    help_text = text(pktgen("send", "--help").stdout)
    for letter in "cinordPtbSkJEsRqugHAQCVevhpD":
        run = pktgen("send", f"-{letter}", *(["1"] if letter in "cinodPtbSkEsugD" else []))
        assert b"No such option" not in run.stderr, letter
        assert f"-{letter}" in help_text, letter


def test_recorded_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """trafgen's command lines with -o FILE.pcap give the same frames here, unless the line is an error in ours."""
    ours_refuse = {
        "cli-14": "-foo", "cli-20": "", "cli-26": "", "cli-29": "2x", "cli-30": "-1", "cli-31": "", "cli-32": "",
        "cli-33": "", "cli-73": "1ppsfoo", "cli-80": "0KiB", "cli-85": "x", "cli-43": "1sec",
    }  # fmt: skip
    skipped = 0
    for line in golden("cli.jsonl"):
        argv = [a.replace("TMPDIR", str(tmp_path)) for a in line["argv"][1:]]
        made = line["created"].get("o.pcap")
        unsupported = {"-p", "-R", "-s", "-u", "-g", "-H", "-i"} & set(argv) or any("eth(" in a for a in argv)
        if made is None or unsupported or line["rc"] != 0 or line["id"] in ours_refuse or "eth(" in str(line["files"]):
            skipped += 1
            continue
        folder = tmp_path / line["id"]
        folder.mkdir()
        monkeypatch.chdir(folder)
        for name, content in line["files"].items():
            Path(name).write_text(content)
        run = pktgen("send", *argv, stdin=None if line["stdin"] is None else line["stdin"].encode())
        assert run.returncode == 0, (line["id"], run.stderr)
        data, at, frames = Path("o.pcap").read_bytes(), 24, []
        while at < len(data):
            size = int.from_bytes(data[at + 8 : at + 12], sys.byteorder)
            frames.append(data[at + 16 : at + 16 + size].hex())
            at += 16 + size
        assert frames == made["packets"] or "drnd" in str(line["files"]), line["id"]
    assert skipped == 61  # of 104: those that are errors in either, or need typed headers, -p, -R, -u


# send: result


def test_summary_keeps_trafgens_lines(tmp_path: Path) -> None:
    run = pktgen("send", "-o", str(tmp_path / "x.pcap"), "-n", "5", "-E", "7", "{ fill(1,60) }")
    out = text(run.stdout)
    assert re.search(r"^ +5 packets outgoing$", out, re.M)
    assert re.search(r"^ +300 bytes outgoing$", out, re.M)
    assert re.search(r"^ +0 sec, \d+ usec on CPU\d+ \(5 packets\)$", out, re.M)
    assert "seed      7" in out
    assert "packets" in text(run.stderr)
    hidden = pktgen("send", "-C", "-o", str(tmp_path / "x.pcap"), "-n", "5", "{ fill(1,60) }")
    assert "on CPU" not in text(hidden.stdout)


def test_a_drawn_seed_is_printed_and_repeats_the_run(tmp_path: Path) -> None:
    one, two = tmp_path / "1.pcap", tmp_path / "2.pcap"
    first = json.loads(pktgen("send", "-o", str(one), "-n", "9", "--json", "{ drnd(40) }").stdout)
    seed = str(first["start"]["seed"])
    pktgen("send", "-o", str(two), "-n", "9", "-E", seed, "{ drnd(40) }")
    records = [p.read_bytes()[24:] for p in (one, two)]
    assert records[0][16:56] == records[1][16:56]
    other = pktgen("send", "-o", str(two), "-n", "9", "{ drnd(40) }")
    assert f"seed      {seed}" not in text(other.stdout)


@pytest.mark.parametrize("count", ["0", "1", "2000"])
def test_json_is_as_its_schema_says(tmp_path: Path, count: str) -> None:
    description = "{ fill(1,60) }" if count != "0" else "cpu(9): { fill(1,60) }"
    run = pktgen("send", "-o", str(tmp_path / "x.pcap"), "-n", count, "-P", "1", "--json", description)
    assert run.returncode == 0
    document = json.loads(run.stdout)
    jsonschema.validate(document, SCHEMA)
    assert document["end"]["tx_packets"] == int(count)
    assert sum(i["tx_packets"] for i in document["intervals"]) == int(count)
    for number in re.findall(r"-?[0-9.]+(?:e[+-]?\d+)?", re.sub(r'"[^"]*"', "", text(run.stdout))):
        assert 0 <= float(number) < float("inf")


def test_json_stream_has_a_line_for_each_event(tmp_path: Path) -> None:
    options = ["--backend", "null", "-b", "100pps", "-n", "30", "--interval", "0.1s", "--json-stream"]
    run = pktgen("send", *options, "{ 1 }")
    lines = [json.loads(line) for line in text(run.stdout).splitlines()]
    for line in lines:
        jsonschema.validate(line, SCHEMA)
    events = [line["event"] for line in lines]
    assert events[0] == "start"
    assert events[-1] == "end"
    assert set(events[1:-1]) == {"interval"}
    assert len(events) >= 4
    assert sum(line["tx_packets"] for line in lines[1:-1]) == lines[-1]["tx_packets"] == 30


def test_broken_json_does_not_validate() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": 1, "start": {}, "intervals": [], "end": {}}, SCHEMA)


def test_lines_come_while_the_run_lasts() -> None:
    """The first line is there within 1.2 s, before the end, when stderr is a pipe."""
    command = [*PKTGEN, "send", "--backend", "null", "-b", "10pps", "--duration", "3s", "{ 1 }"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        began = time.monotonic()
        assert child.stderr is not None
        lines = [child.stderr.readline(), child.stderr.readline()]
        assert time.monotonic() - began < 1.7
        assert re.search(r"1\.\d\d s +\d+ packets +\d", lines[1])
        child.terminate()


def test_the_later_of_gap_and_rate_wins() -> None:
    for arguments, pps in ((("-t", "1ms", "-b", "50pps"), 50), (("-b", "50pps", "-t", "1ms"), 1000)):
        run = pktgen("send", "--backend", "null", "-n", "3", "--json", *arguments, "{ 1 }")
        assert json.loads(run.stdout)["start"]["requested"]["pps"] == pps
    for arguments in (("-t", "0"), ("-b", "0"), ("-b", "0pps")):
        run = pktgen("send", "--backend", "null", "-n", "3", "--json", *arguments, "{ 1 }")
        assert json.loads(run.stdout)["start"]["requested"]["pps"] is None


def test_whichever_end_comes_first() -> None:
    began = time.monotonic()
    run = pktgen("send", "--backend", "null", "-n", "5", "-t", "1ms", "--duration", "3s", "--json", "{ 1 }")
    assert json.loads(run.stdout)["end"]["tx_packets"] == 5
    assert time.monotonic() - began < 1.5
    run = pktgen("send", "--backend", "null", "-n", "1G", "-t", "100ms", "--duration", "0.35s", "--json", "{ 1 }")
    assert json.loads(run.stdout)["end"]["tx_packets"] == 4
    assert run.returncode == 0


def test_a_rate_in_bits_counts_what_is_sent(tmp_path: Path) -> None:
    description = "{ fill(0,60) } cpu(5): { fill(0,1460) }"
    run = pktgen("send", "--backend", "null", "-P", "1", "-n", "3", "-b", "48kbit", "--json", description)
    assert json.loads(run.stdout)["start"]["requested"]["pps"] == pytest.approx(100)


def test_closed_streams() -> None:
    command = [*PKTGEN, "send", "--backend", "null", "-n", "10", "{ 1 }"]
    for descriptor in (1, 2):
        run = subprocess.run(
            command, capture_output=True, check=False, preexec_fn=lambda closed=descriptor: os.close(closed)
        )
        assert run.returncode == 0, run
        assert b"Traceback" not in run.stderr
        assert descriptor == 1 or b"10 packets outgoing" in run.stdout


def test_slow_rates_and_no_gap_after_the_last() -> None:
    began = time.monotonic()
    run = pktgen("send", "--backend", "null", "-n", "2", "-b", "1pps", "--json", "{ 1 }")
    assert 1.0 < time.monotonic() - began < 1.9
    assert json.loads(run.stdout)["end"]["achieved_pps"] == pytest.approx(1, rel=0.01)


def test_verbose_lists_the_program(tmp_path: Path) -> None:
    run = pktgen("send", "-V", "-o", str(tmp_path / "x.pcap"), "-n", "1", "{ dinc(2,9) }")
    assert "counter 2..9 step 1" in text(run.stderr)


def test_warnings_go_to_stderr_and_strict_refuses(tmp_path: Path) -> None:
    path = str(tmp_path / "x.pcap")
    run = pktgen("send", "-o", path, "-n", "1", "{ 256 }")
    assert run.returncode == 0
    assert "warning: 256 does not fit" in text(run.stderr)
    assert "error: 256 does not fit" in refused("send", "-o", path, "-n", "1", "--strict", "{ 256 }")
    dropped = pktgen("send", "-o", path, "-n", "4", "-P", "1", "cpu(1): {1}")
    assert dropped.returncode == 0
    assert "packet 0 is for workers 1-1" in text(dropped.stderr)
    refused("send", "-o", path, "-n", "4", "-P", "1", "--strict", "cpu(1): {1}")
    empty = pktgen("send", "-o", path, "-n", "4", "-i", "-", stdin=b"")
    assert empty.returncode == 0
    assert "holds no packet" in text(empty.stderr)


def test_workers_stay_inside_the_cpuset() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    command = [*PKTGEN, "send", "--backend", "null", "-n", "10", "--json", "{ 1 }"]
    last = cpus[-1]
    run = subprocess.run(
        command, capture_output=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, {last})
    )
    assert json.loads(run.stdout)["start"]["cpus"] == [last]
    listed = pktgen("send", "--backend", "null", "-P", f"{last},{cpus[0]}", "-n", "10", "--json", "{ 1 }")
    assert json.loads(listed.stdout)["start"]["cpus"] == [last, cpus[0]]
    for arguments in (["--help"], ["send", "-e"]):
        subprocess.run(
            [*PKTGEN, *arguments], capture_output=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, {last})
        )


def test_example_sends_itself(tmp_path: Path) -> None:
    """-e | -i - works from any directory, with nothing in PATH."""
    example = pktgen("send", "-e")
    assert example.returncode == 0
    run = subprocess.run(
        [*PKTGEN, "send", "--strict", "-o", "x.pcap", "-n", "3", "-i", "-"], input=example.stdout, cwd=tmp_path,
        env={"PATH": ""}, capture_output=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


# help


@pytest.mark.parametrize("command", ["", "send", "show", "demo"])
def test_help_begins_with_examples(command: str) -> None:
    run = pktgen(*command.split(), "-h")
    assert run.returncode == 0
    out = text(run.stdout)
    assert out.index("pktgen ") < out.index("Options:")
    assert out == text(pktgen(*command.split(), "--help").stdout)


@pytest.mark.parametrize("command", ["send", "show"])
def test_every_option_has_a_default_or_meaning(command: str) -> None:
    from importlib import import_module

    for option in import_module(f"pktgen_cli.cli.{command}").command.params:
        if getattr(option, "hidden", False) or option.param_type_name == "argument":
            continue
        shown = option.help or ""
        fixed = option.is_eager or option.name in ("cpp", "defines")
        assert fixed or "[default" in shown or "[required]" in shown or option.show_default, option.name


def test_help_stays_fast_and_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom pktgen_cli.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted(m for m in ('pyroute2', 'rich.live', 'pktgen_cli._fastpath') if m in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_send_does_not_import_netlink(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pktgen_cli.cli.main import main\n"
        f"try:\n    main(['send','-o',{str(tmp_path / 'x.pcap')!r},'-n','1','{{ 1 }}'])\nexcept SystemExit as end:\n"
        "    print(end.code, 'pyroute2' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "0 False"


# on links


@pytest.mark.root
def test_privileges_are_dropped_once_sockets_are_open(lab: Lab) -> None:
    for options, wanted in (
        (("-u", "nobody"), (65534, 0)), (("-g", "65534"), (0, 65534)), (("-u", "65534", "-g", "65534"), (65534, 65534)),
    ):  # fmt: skip
        run = Sender(lab, "send", "-o", "v0", "-b", "100pps", "-n", "60", *options, "--json", TEST_FRAME)
        seen = set()
        end = time.monotonic() + 0.4
        while time.monotonic() < end and run.process.poll() is None:
            for child in Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split():
                status = Path(f"/proc/{child}/status").read_text()
                seen.add(tuple(int(re.search(rf"^{k}:\t(\d+)", status, re.M)[1]) for k in ("Uid", "Gid")))  # type: ignore[index]
            time.sleep(0.02)
        run.finish()
        assert run.code == 0, run.stderr
        assert wanted in seen
        assert run.json["end"]["tx_packets"] == 60


@pytest.mark.root
def test_root_without_the_capability_is_told_so(lab: Lab) -> None:
    setpriv = [need("setpriv"), "--bounding-set", "-net_raw"]
    child = lab.popen(
        lab.tx, [*setpriv, *PKTGEN, "send", "-o", "v0", "-n", "1", TEST_FRAME],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
    )  # fmt: skip
    out, errors = child.communicate(timeout=10)
    assert child.returncode == 4
    assert out == ""
    assert "CAP_NET_RAW" in errors
    assert "Traceback" not in errors


@pytest.mark.root
def test_nothing_of_the_host_is_changed(lab: Lab) -> None:
    def settings() -> dict[str, str]:
        names = [*Path("/proc/sys/net/core").glob("*mem*"), *Path("/proc/irq").glob("*/smp_affinity")]
        return {str(n): n.read_text() for n in names}

    before = settings()
    assert send(lab, "-n", "1000", TEST_FRAME).code == 0
    assert settings() == before


@pytest.mark.root
def test_accepted_without_effect(lab: Lab) -> None:
    run = send(lab, "-n", "10", "-A", "-Q", "-k", "5us", "--no-sock-mem", "--notouch-irq", TEST_FRAME)
    assert run.code == 0
    assert "-k has no effect" in run.stderr


@pytest.mark.root
def test_ring_options(lab: Lab) -> None:
    for options in (("-S", "64KiB"), ("-S", "8MiB"), ("-J",), ("-J", "-S", "1MiB")):
        run = send(lab, "-n", "3000", "--backend", "ring", *options, "--json", TEST_FRAME)
        assert run.code == 0, run.stderr
        assert run.json["end"]["tx_packets"] == 3000


@pytest.mark.root
def test_high_priority_runs(lab: Lab) -> None:
    run = send(lab, "-H", "-n", "1000", "-P", "1", "--json", TEST_FRAME)
    assert run.code in (0, 4), run.stderr
    assert run.code == 4 or run.json["end"]["tx_packets"] == 1000


@pytest.mark.root
def test_share_of_the_links_speed(lab: Lab) -> None:
    """veth says 10 Gbit/s: 0.1 % of that on layer 1 is 84 bytes * 8 at 14,880 pps."""
    run = send(lab, "-b", "0.1%", "-n", "100", "--json", TEST_FRAME)
    assert run.code == 0, run.stderr
    assert run.json["start"]["requested"]["pps"] == pytest.approx(10**7 / (84 * 8))
    assert run.json["start"]["link"]["driver"] == "veth"


@pytest.mark.root
def test_a_link_named_like_a_file_is_a_link(lab: Lab) -> None:
    lab.down(lab.tx, "v0")
    lab.link(lab.tx, "v0", "set", ifname="x.pcap")
    lab.up(lab.tx, "x.pcap")
    run = Sender(lab, "send", "-o", "x.pcap", "-n", "7", TEST_FRAME).finish()
    assert run.code == 0, run.stderr
    assert lab.counters(lab.rx, "v1")["rx_packets"] == 7
    assert not Path("x.pcap").exists()


@pytest.mark.root
def test_table_on_a_terminal(lab: Lab) -> None:
    main, side = terminal()
    child = lab.popen(
        lab.tx, [*PKTGEN, "send", "-o", "v0", "-b", "1kpps", "-n", "800", TEST_FRAME],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=side,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
    )  # fmt: skip
    os.close(side)
    shown = b""
    try:
        while chunk := os.read(main, 65536):
            shown += chunk
    except OSError:
        pass
    os.close(main)
    out, _ = child.communicate(timeout=10)
    assert child.returncode == 0
    screen = shown.decode()
    for heading in ("CPU", "packets", "layer 2", "layer 1", "refused", "kpps"):
        assert heading in screen
    assert screen.count("┏") >= 3  # drawn again several times in 0.8 s
    assert "800 packets outgoing" in out


def test_demo_without_root_writes_a_file(tmp_path: Path) -> None:
    command = [*unprivileged(), *PKTGEN, "demo"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "not root" in run.stderr
    assert (tmp_path / "pktgen-demo.pcap").stat().st_size > 1000 * 60
