"""Where a mistake is and how it is shown.

A `Source` is bytes with a name; a `Span` is two offsets into it; a `Diagnostic` says
what is wrong there. Everything that refuses input speaks through the one renderer
below, so that each message has file, line, column, a caret and, where one is near, a
hint. Text is held as latin-1, one character a byte, because the language has no
character set and offsets must be byte offsets; only the renderer decodes UTF-8.
"""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

MAX_SHOWN = 25
"""Errors shown in full; the rest are counted, so that a binary file is not printed whole."""

MAX_LINE = 160
"""Characters of a source line that are shown; a longer one is cut around the caret."""


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of byte offsets [start, end) in a source."""

    start: int
    end: int


class Source:
    """The text of one description and the name that messages give it."""

    __slots__ = ("_lines", "data", "name", "text")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        self.text = data.decode("latin-1")
        self._lines: list[int] | None = None

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a byte offset, both from 1; columns count characters."""
        if self._lines is None:
            self._lines = [0]
            at = self.data.find(b"\n")
            while at >= 0:
                self._lines.append(at + 1)
                at = self.data.find(b"\n", at + 1)
        line = bisect_right(self._lines, offset)
        start = self._lines[line - 1]
        return line, len(_decode(self.data[start:offset])) + 1

    def line(self, number: int) -> bytes:
        """The bytes of line `number` (from 1) without its end."""
        self.place(0)
        assert self._lines is not None
        start = self._lines[number - 1]
        end = self._lines[number] - 1 if number < len(self._lines) else len(self.data)
        return self.data[start:end].rstrip(b"\r")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message; `severity` is "error" or "warning"."""

    severity: str
    span: Span
    message: str
    hints: tuple[str, ...] = ()


@dataclass(slots=True)
class Diagnostics:
    """Collects what is found in one source; `strict` turns each warning into an error."""

    source: Source
    strict: bool = False
    found: list[Diagnostic] = field(default_factory=list)
    errors: int = 0

    def error(self, span: Span, message: str, *hints: str) -> None:
        self.errors += 1
        self.found.append(Diagnostic("error", span, message, hints))

    def warn(self, span: Span, message: str, *hints: str) -> None:
        if self.strict:
            self.error(span, message, *hints)
        else:
            self.found.append(Diagnostic("warning", span, message, hints))

    def render(self) -> str:
        """Every message in the order of the text, errors and warnings together."""
        ordered = sorted(self.found, key=lambda d: (d.span.start, d.span.end))
        text = "".join(render(self.source, d) for d in ordered[:MAX_SHOWN])
        if len(ordered) > MAX_SHOWN:
            text += f"... and {len(ordered) - MAX_SHOWN} more\n"
        return text


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _plain(text: str) -> str:
    """Control characters would move the caret or the terminal; tabs become one blank."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def render(source: Source, diagnostic: Diagnostic) -> str:
    """The message in compiler style: place, text, source line, caret, hints."""
    span = diagnostic.span
    line, column = source.place(span.start)
    raw = source.line(line)
    shown = _plain(_decode(raw))
    width = len(_decode(source.data[span.start : span.end].split(b"\n")[0].rstrip(b"\r")))
    offset = column - 1
    if len(shown) > MAX_LINE:
        cut = max(0, min(offset - MAX_LINE // 2, len(shown) - MAX_LINE))
        shown = ("..." if cut else "") + shown[cut : cut + MAX_LINE]
        offset += (3 if cut else 0) - cut
    width = max(1, min(width, len(shown) - offset))
    gutter = f"{line:>5} | "
    text = f"{source.name}:{line}:{column}: {diagnostic.severity}: {diagnostic.message}\n"
    text += f"{gutter}{shown}\n{' ' * (len(gutter) - 2)}| {' ' * offset}^{'~' * (width - 1)}\n"
    for hint in diagnostic.hints:
        text += f"{' ' * (len(gutter) - 2)}hint: {hint}\n"
    return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be, if one is near."""
    found = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return found[0] if found else None
