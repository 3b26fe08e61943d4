"""How a mistake is shown: line, column, caret, hints, whatever the text looks like."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pktgen_cli.diagnostics import MAX_SHOWN, Diagnostic, Diagnostics, Source, Span, nearest, render


def shown(data: bytes, start: int, end: int, *hints: str) -> str:
    return render(Source("f", data), Diagnostic("error", Span(start, end), "bad", hints))


def test_place_and_caret() -> None:
    assert shown(b"one\ntwo three\n", 8, 13, "do this") == (
        "f:2:5: error: bad\n    2 | two three\n      |     ^~~~~\n      hint: do this\n"
    )


def test_columns_count_characters_not_bytes() -> None:
    text = '"café", x'.encode()
    at = text.index(b"x")
    assert shown(text, at, at + 1).splitlines()[0].startswith("f:1:9:")
    assert shown(text, at, at + 1).splitlines()[2] == "      |         ^"


def test_tabs_and_controls_do_not_move_the_caret() -> None:
    lines = shown(b"\t\x1b[31m x", 7, 8).splitlines()
    assert lines[1] == "    1 |  �[31m x"
    assert lines[2].index("^") == lines[1].index("x")


def test_a_long_line_is_cut_around_the_caret() -> None:
    data = b"a" * 5000 + b"X" + b"b" * 5000
    lines = shown(data, 5000, 5001).splitlines()
    assert len(lines[1]) < 200
    assert lines[2].index("^") == lines[1].index("X")


def test_carriage_returns_are_not_shown() -> None:
    assert "\r" not in shown(b"one\r\ntwo\r\n", 5, 8)


def test_a_span_over_lines_marks_the_first() -> None:
    assert shown(b"{ 1,\n2 }", 0, 8).splitlines()[2] == "      | ^~~~"


@given(st.binary(max_size=80), st.integers(0, 80), st.integers(0, 80))
def test_any_span_of_any_bytes_can_be_shown(data: bytes, start: int, width: int) -> None:
    start = min(start, len(data))
    lines = shown(data, start, min(start + width, len(data))).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("f:")


def test_many_messages_are_cut_and_counted() -> None:
    found = Diagnostics(Source("f", b"x" * 99))
    for i in range(60):
        found.error(Span(i, i + 1), "bad")
    text = found.render()
    assert text.count("error") == MAX_SHOWN
    assert text.endswith(f"... and {60 - MAX_SHOWN} more\n")


def test_messages_stand_in_the_order_of_the_text() -> None:
    found = Diagnostics(Source("f", b"abc"))
    found.error(Span(2, 3), "second")
    found.warn(Span(0, 1), "first")
    assert found.render().index("first") < found.render().index("second")
    assert found.errors == 1


def test_nearest_word() -> None:
    assert nearest("fil", ["fill", "rnd"]) == "fill"
    assert nearest("zzz", ["fill", "rnd"]) is None
