"""Text to tokens.

Tokens are tuples (kind, start, end, value). Kinds are the punctuation itself, and
"number", "run" (plain bytes), "call" (a function of plain numbers), "string", "name" and
"end"; "bad" marks a place that was reported already. Blanks and comments
only separate; the parser tells from the offsets whether two tokens touch. Keywords do
not exist here: a word that is no number is a name.

The rules are language.md section 1 with the superset of 1.9: comments `#`, `//`, `;` and
`/* */` wherever a blank may stand, a carriage return is a blank, `X` and `B` prefixes in
both cases.
"""

from __future__ import annotations

import re

from pktgen_cli.diagnostics import Diagnostics, Span

Token = tuple[str, int, int, object]

MAX_NUMBER = 2**64 - 1
MAX_KEPT = 24
"""Characters of the longest run that is kept."""

_BLANK = r"[ \t\r\n\v\f]"
_COMMENT = re.compile(r"(?:\#|;|//)[^\n]*|/\*.*?\*/", re.S)
_DIRECTIVE = re.compile(r"#[ \t]*(?:define|undef|include|if|ifdef|ifndef|elif|else|endif)\b")
_PLAIN = r"(?:0[xX][0-9a-fA-F]{1,2}|[0-9]{1,4}|0[bB][01]{1,8}|'[^\\\s,']')(?![0-9A-Za-z_'])"
_WIDE = r"(?:0[xX][0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,17})"
_BETWEEN = rf"(?:{_BLANK}*,{_BLANK}*|{_BLANK}+)"
_TOKEN = re.compile(
    rf"""{_BLANK}*(?:
      (?P<run>{_PLAIN}(?:{_BETWEEN}{_PLAIN})*)
    | (?P<call>(?![cC][pP][uU]\()[A-Za-z][A-Za-z0-9]*\((?:{_WIDE}(?:{_BETWEEN}{_WIDE})*)?\))
    | (?P<word>[A-Za-z0-9_]+)
    | (?P<punct>[{{}}(),:=\[\]+\-*%&|^.]|/(?![/*]))
    | (?P<string>"[^"]*")
    | (?P<char>'(?:\\[xX][0-9a-fA-F]{{2}}|[^\n])')
    | (?P<shift><{_BLANK}*<|>{_BLANK}*>)
    | (?P<end>\Z)
    )""",
    re.X,
)
_WORD_AT = re.compile(r"[0-9A-Za-z_]+")
_DECIMAL = re.compile(r"0|[1-9][0-9]*")
_OCTAL = re.compile(r"0[0-7]+")
_HEX = re.compile(r"0?[xX]([0-9a-fA-F]+)")
_BINARY = re.compile(r"0?[bB]([01]+)")
_GROUP = re.compile(r"\\[xX]([0-9a-fA-F]{2})")
_BROKEN_GROUP = re.compile(r"\\[xX](?![0-9a-fA-F]{2})")


class _Runs(dict[str, bytes]):
    """Bytes of the runs of plain numbers seen so far, empty where one of them is no byte.

    Descriptions repeat themselves: short runs and single numbers are kept, long ones are not worth it.
    """

    def __missing__(self, run: str) -> bytes:
        words = run.replace(",", " ").split()
        if len(words) > 1:
            parts = [self[word] for word in words]
            data = b"".join(parts) if all(parts) else b""
        else:
            value = ord(run[1]) if run[0] == "'" else number_of(run)
            data = bytes([value]) if value is not None and value < 256 else b""
        if len(run) <= MAX_KEPT:
            self[run] = data
        return data


_runs = _Runs()


def number_of(word: str) -> int | None:
    """The value of a word in any number form of language.md 1.2, None if it is none."""
    if _DECIMAL.fullmatch(word):
        return int(word) if len(word) <= 20 else MAX_NUMBER + 1
    if _OCTAL.fullmatch(word):
        return int(word, 8)
    if match := _HEX.fullmatch(word):
        return int(match[1], 16)
    if match := _BINARY.fullmatch(word):
        return int(match[1], 2)
    if len(word) == 1 and word.isalpha():
        return ord(word)
    return None


def tokenize(diagnostics: Diagnostics) -> list[Token]:
    """All tokens of the source, ending with "end". What is no token is reported and left out."""
    text = diagnostics.source.text
    tokens: list[Token] = []
    append, match_token = tokens.append, _TOKEN.match
    at = 3 if text.startswith("\xef\xbb\xbf") else 0  # a UTF-8 byte order mark
    depth = 0
    while True:
        match = match_token(text, at)
        if match is None:
            at, end, readable = _comment_or_unreadable(diagnostics, text, at)
            if not readable:
                append(("bad", at, end, None))
            at = end
            continue
        kind = match.lastgroup
        assert kind is not None
        at, end = match.span(kind)
        if kind == "run":
            data = _runs[match[kind]] if depth == 0 else b""
            if data:
                append((kind, at, end, data))
            else:
                _numbers(diagnostics, match[kind], at, tokens)
        elif kind == "call":
            append((kind, at, end, match[kind]))
        elif kind == "punct":
            kind = match[kind]
            depth = 0 if kind in "{}" else max(depth + (kind == "(") - (kind == ")"), 0)
            append((kind, at, end, None))
        elif kind == "word":
            append(_word(diagnostics, match[kind], at, end))
        elif kind == "string":
            append((kind, at, end, _string(diagnostics, match[kind][1:-1], at)))
        elif kind == "char":
            body = match[kind][1:-1]
            append(("number", at, end, int(body[2:], 16) if len(body) > 1 else ord(body)))
        elif kind == "shift":
            append((match[kind][0] * 2, at, end, None))
        else:
            append((kind, at, end, None))
            return tokens
        if text[end : end + 1] == ",":
            append((",", end, end + 1, None))
            end += 1
        at = end


def _numbers(diagnostics: Diagnostics, run: str, start: int, tokens: list[Token]) -> None:
    """The numbers of a run one by one: inside parentheses, or where one is no byte."""
    for match in re.finditer(r",|'.'|[0-9A-Za-z]+", run):
        text, first, last = match[0], start + match.start(), start + match.end()
        if text == ",":
            tokens.append((",", first, last, None))
        elif text[0] == "'":
            tokens.append(("number", first, last, ord(text[1])))
        else:
            tokens.append(_word(diagnostics, text, first, last))


def call_numbers(text: str) -> tuple[str, tuple[int, ...]]:
    """Name and arguments of a "call" token, whose arguments are all plain numbers."""
    name, _, rest = text[:-1].partition("(")
    return name, tuple(int(w, 16) if w[:2] in ("0x", "0X") else int(w) for w in rest.replace(",", " ").split())


def _word(diagnostics: Diagnostics, word: str, start: int, end: int) -> Token:
    value = number_of(word)
    span = Span(start, end)
    if value is None:
        if not word[0].isdigit():
            return ("name", start, end, word)
        if re.fullmatch(r"0[0-9]+", word):
            diagnostics.error(
                span, f"{word} is not a number: a leading 0 means octal, digits 0 to 7",
                f"write {word.lstrip('0')} for decimal",
            )  # fmt: skip
        elif word.lower() in ("0x", "0b"):
            diagnostics.error(span, f"{word} has no digits", f"write {word}1, or 'x' for the letter")
        else:
            hint = f"0x{word} is hexadecimal" if re.fullmatch(r"[0-9a-fA-F]+", word) else "separate with a comma"
            diagnostics.error(span, f"{word} is not a number", hint)
        return ("number", start, end, 0)
    if value > MAX_NUMBER:
        diagnostics.warn(span, "number does not fit in 64 bits; 2^64 - 1 is used")
        value = MAX_NUMBER
    return ("number", start, end, value)


def _string(diagnostics: Diagnostics, body: str, start: int) -> bytes:
    r"""The bytes of a string: \xHH groups become bytes, everything else stands as it is."""
    if not body:
        diagnostics.error(Span(start, start + 2), "empty string", "leave it out, or write 0 for a zero byte")
    for broken in _BROKEN_GROUP.finditer(body):
        at = start + 1 + broken.start()
        if re.fullmatch(r"(?:\\[xX]..)+", body, re.S):  # meant as bytes throughout
            diagnostics.error(Span(at, min(at + 4, start + 1 + len(body))), r"\x needs two hexadecimal digits")
        else:
            diagnostics.warn(Span(at, at + 2), r"\x without two hexadecimal digits stays as text")
    return _GROUP.sub(lambda match: chr(int(match[1], 16)), body).encode("latin-1")


def _comment_or_unreadable(diagnostics: Diagnostics, text: str, at: int) -> tuple[int, int, bool]:
    """A comment, or what starts no token, which is reported: its start, its end, and whether it was a comment."""
    while text[at] in " \t\r\n\v\f":
        at += 1
    if comment := _COMMENT.match(text, at):
        if _DIRECTIVE.match(text, at):
            diagnostics.warn(
                Span(at, comment.end()), "this is a comment here, not a directive",
                "there is no preprocessor yet; run cpp -P yourself",
            )  # fmt: skip
        return at, comment.end(), True
    char = text[at]
    if text.startswith("/*", at):
        diagnostics.error(Span(at, at + 2), "comment is not closed", "write */ at its end")
        return at, len(text), False
    if char == '"':
        diagnostics.error(Span(at, at + 1), "string is not closed", 'write " at its end')
        return at, len(text), False
    if char == "'":
        end = at + 1
        closing = text.find("'", at + 1, at + 8)
        if closing > 0 and "\n" not in text[at:closing]:
            end = closing + 1
        diagnostics.error(
            Span(at, end), "a character is one byte between quotes: 'a' or '\\x41'", 'text is written "..."'
        )
        return at, end, False
    if char in "<>":
        diagnostics.error(Span(at, at + 1), f"{char} alone is no operator", f"shifts are written {char * 2}")
        return at, at + 1, False
    end = at + 1
    while end < len(text) and text[end] == char:
        end += 1
    shown = repr(char) if char.isascii() and char.isprintable() else f"byte {ord(char):#04x}"
    hint = "for text write \"...\"; comments begin with #, ;, // or /*" if char.isascii() else "text is written \"...\""
    if char == "~":
        hint = "there is no complement; ~x is -1-x"
    diagnostics.error(Span(at, end), f"{shown} does not belong to the language", hint)
    return at, end, False


def words_in(text: str, start: int, end: int) -> list[Span]:
    """Where the numbers and names between two offsets stand."""
    return [Span(match.start(), match.end()) for match in _WORD_AT.finditer(text, start, end)]
