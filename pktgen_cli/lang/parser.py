"""Tokens to syntax tree, by recursive descent.

After an error the parser goes on at the next element or packet, so that one run shows
every mistake. Expressions keep the order of the text; their value is found in
`expression`.
"""

from __future__ import annotations

from pktgen_cli.diagnostics import Diagnostics, Span, nearest
from pktgen_cli.lang.lexer import Token, tokenize
from pktgen_cli.lang.syntax import (
    Bytes,
    Call,
    Chain,
    Element,
    Expression,
    Negated,
    Number,
    Packet,
    Parens,
    PlainCall,
    Selector,
)

MAX_DEPTH = 64
"""Nesting of parentheses."""

_OPERATORS = frozenset(("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"))
_OPENS_VALUE = frozenset(("number", "-", "("))
_FIELD_TOKENS = frozenset(("=", ":", ".", "[", "]", "string", "name", "call"))
_NAMES = {
    "call": "a function", "{": "'{'", "}": "'}'", "end": "the end of the text", "run": "a number", "number": "a number",
    "string": "a string", "name": "a word",
}  # fmt: skip


def _name(token: Token) -> str:
    return _NAMES.get(token[0], f"'{token[0]}'")


class _Mistake(Exception):
    """An error was reported; unwinds to the next place where parsing can go on."""


class Parser:
    """One pass over the tokens of one source."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.tokens = tokenize(diagnostics)
        self.at = 0

    def fail(self, span: Span, message: str, *hints: str) -> _Mistake:
        self.diagnostics.error(span, message, *hints)
        return _Mistake()

    def fail_at(self, token: Token, message: str, *hints: str) -> _Mistake:
        if token[0] == "bad":  # the lexer has said what is wrong there
            return _Mistake()
        return self.fail(Span(token[1], max(token[2], token[1] + 1)), message, *hints)

    # packets

    def packets(self) -> list[Packet]:
        found = []
        while self.tokens[self.at][0] != "end":
            try:
                found.append(self.packet())
            except _Mistake:
                self.skip_packet()
        return found

    def skip_packet(self) -> None:
        """To after the next '}' that is followed by something that can start a packet."""
        while (kind := self.tokens[self.at][0]) not in ("end", "{"):
            if kind == "name" and self.is_selector():
                return
            self.at += 1
            if kind == "}" and self.tokens[self.at][0] != "}":
                return

    def is_selector(self) -> bool:
        return str(self.tokens[self.at][3]).lower() == "cpu" and self.tokens[self.at + 1][0] == "("

    def packet(self) -> Packet:
        token = self.tokens[self.at]
        selector = None
        if token[0] == "name" and self.is_selector():
            selector = self.selector()
            token = self.tokens[self.at]
        if token[0] != "{":
            self.at += token[0] != "end"
            hints = []
            if token[0] == "}":
                hints.append("there is one '}' too many")
            elif token[0] == ",":
                hints.append("packets are separated by blanks only")
            elif token[0] == "name" and nearest(str(token[3]), ["cpu"]):
                hints.append("a CPU selector is written cpu(0-1):")
            else:
                hints.append("a packet is written { 0xff, 1, ... }")
            raise self.fail_at(token, f"expected a packet, found {_name(token)}", *hints)
        self.at += 1
        first, errors = self.at, self.diagnostics.errors
        elements = self.elements(token)
        closing = self.tokens[self.at]
        if closing[0] != "}":
            raise self.fail(Span(token[1], token[2]), "packet is not closed", "write } at its end")
        if not elements and self.diagnostics.errors == errors and self.is_empty(first):
            self.diagnostics.error(Span(token[1], closing[2]), "empty packet", "a packet holds at least one element")
        self.at += 1
        return Packet(token[1] if selector is None else selector.start, closing[2], selector, elements)

    def is_empty(self, first: int) -> bool:
        """Whether a packet without elements has not even a comment; `first` is the token after its '{'."""
        inside = self.tokens[first : self.at]
        blank = not self.diagnostics.source.text[self.tokens[first - 1][2] : self.tokens[self.at][1]].strip()
        return (blank or bool(inside)) and all(token[0] != "bad" for token in inside)

    def selector(self) -> Selector:
        start = self.tokens[self.at][1]
        self.at += 2
        first = self.plain_number()
        last = first
        if self.tokens[self.at][0] in ("-", ":"):
            self.at += 1
            last = self.plain_number()
        self.take(")", "a selector is written cpu(0): or cpu(0-3):")
        end = self.take(":", "a selector ends with ')' and ':'")
        self.at += self.tokens[self.at][0] == ","  # trafgen allows one
        return Selector(start, end[2], min(first, last), max(first, last))

    def plain_number(self) -> int:
        token = self.tokens[self.at]
        if token[0] != "number":
            raise self.fail_at(
                token, f"expected a worker number, found {_name(token)}", "a selector is written cpu(0): or cpu(0-3):"
            )
        self.at += 1
        assert isinstance(token[3], int)
        return token[3]

    def take(self, kind: str, hint: str) -> Token:
        token = self.tokens[self.at]
        if token[0] != kind:
            raise self.fail_at(token, f"expected '{kind}', found {_name(token)}", hint)
        self.at += 1
        return token

    # elements

    def elements(self, opening: Token) -> list[Element]:
        """Everything up to '}' (left for the caller), the end of the text, or a '{' that does not belong."""
        found: list[Element] = []
        tokens = self.tokens
        comma: Token | None = None  # the delimiter before this element, if it was a comma
        previous_end = opening[2]
        separated = True
        while True:
            token = tokens[self.at]
            kind = token[0]
            if kind in ("}", "end", "{"):
                return found
            if kind == ",":
                if comma is not None:
                    self.diagnostics.error(
                        Span(token[1], token[2]), "two commas without an element between", "leave one out"
                    )
                comma = token
                separated = True
                self.at += 1
                previous_end = token[2]
                continue
            if kind == "bad":
                self.at += 1
                comma, separated = None, True
                continue
            if not separated and token[1] == previous_end:
                self.diagnostics.error(
                    Span(token[1], max(token[2], token[1] + 1)), "elements touch", "separate with a comma or a blank"
                )
            comma = None
            if (kind == "run" or kind == "call") and tokens[self.at + 1][0] == ",":  # most elements: no detour
                _, start, end, value = token
                found.append(Bytes(start, end, value) if kind == "run" else PlainCall(start, end, value))  # type: ignore[arg-type]
                comma = tokens[self.at + 1]
                previous_end = comma[2]
                separated = True
                self.at += 2
                continue
            try:
                found.append(self.element(token))
            except _Mistake:
                self.skip_element()
            separated = False
            previous_end = tokens[self.at - 1][2]

    def skip_element(self) -> None:
        """To the next comma or brace outside parentheses."""
        depth = 0
        while (kind := self.tokens[self.at][0]) not in ("end", "{", "}"):
            if kind == "," and depth <= 0:
                return
            depth += (kind == "(") - (kind == ")")
            self.at += 1

    def element(self, token: Token) -> Element:
        kind, start, end, value = token
        if kind == "run" or kind == "string":
            self.at += 1
            assert isinstance(value, bytes)
            self.no_operator()
            return Bytes(start, end, value)
        if kind == "call":
            self.at += 1
            assert isinstance(value, str)
            self.no_operator()
            return PlainCall(start, end, value)
        if kind == "number":
            self.at += 1
            assert isinstance(value, int)
            self.no_operator()
            return Number(start, end, value)
        if kind == "name":
            return self.call()
        if kind in ("-", "("):
            raise self.fail_at(token, "an element is a plain number", "write c8(...) for an expression")
        if kind in _OPERATORS:
            raise self.fail_at(token, f"{_name(token)} has nothing on its left", "write c8(...) for an expression")
        raise self.fail_at(token, f"expected an element, found {_name(token)}")

    def no_operator(self) -> None:
        token = self.tokens[self.at]
        if token[0] in _OPERATORS:
            raise self.fail_at(token, "operators stand only inside functions", "write c8(...) for an expression")

    def call(self) -> Call:
        _, start, name_end, name = self.tokens[self.at]
        assert isinstance(name, str)
        self.at += 1
        if self.tokens[self.at][0] != "(":
            return Call(start, name_end, name, name_end, None)
        opening = self.tokens[self.at]
        self.at += 1
        closing = self.closing_of(opening)
        if any(token[0] in _FIELD_TOKENS for token in self.tokens[self.at : closing]):
            end = self.tokens[closing][2]
            self.at = closing + 1
            return Call(start, end, name, name_end, [], fields=True)
        arguments = self.arguments()
        end = self.take(")", "arguments end with ')'")[2]
        return Call(start, end, name, name_end, arguments)

    def closing_of(self, opening: Token) -> int:
        """Index of the ')' that belongs to the '(' just taken."""
        depth, at = 1, self.at
        while (kind := self.tokens[at][0]) not in ("end", "{", "}"):
            depth += (kind == "(") - (kind == ")")
            if depth == 0:
                return at
            at += 1
        raise self.fail_at(opening, "'(' is not closed", "write ) after the arguments")

    def arguments(self) -> list[Expression]:
        found: list[Expression] = []
        while self.tokens[self.at][0] != ")":
            token = self.tokens[self.at]
            if token[0] == "," or (found and token[1] == self.tokens[self.at - 1][2] and token[0] != ","):
                if token[0] != ",":
                    raise self.fail_at(token, "arguments touch", "separate with a comma or a blank")
                if not found or self.tokens[self.at + 1][0] in (",", ")"):
                    raise self.fail_at(token, "an argument is missing")
                self.at += 1
            found.append(self.expression(0))
        return found

    # expressions

    def expression(self, depth: int) -> Expression:
        first = self.operand(depth)
        if self.tokens[self.at][0] not in _OPERATORS:
            return first
        operands, operators = [first], []
        while self.tokens[self.at][0] in _OPERATORS:
            operators.append(self.tokens[self.at][0])
            self.at += 1
            operands.append(self.operand(depth))
        return Chain(first.start, operands[-1].end, operands, operators)

    def operand(self, depth: int) -> Expression:
        token = self.tokens[self.at]
        kind, start, end, value = token
        self.at += 1
        if kind == "number":
            assert isinstance(value, int)
            return Number(start, end, value)
        if kind not in _OPENS_VALUE:
            self.at -= 1
            hints = ["there is no unary plus"] if kind == "+" else []
            raise self.fail_at(token, f"expected a number, found {_name(token)}", *hints)
        if depth >= MAX_DEPTH:
            raise self.fail_at(token, f"more than {MAX_DEPTH} levels of parentheses and signs")
        if kind == "-":
            operand = self.operand(depth + 1)
            return Negated(start, operand.end, operand)
        inner = self.expression(depth + 1)
        return Parens(start, self.take(")", "'(' is not closed")[2], inner)


def parse(diagnostics: Diagnostics) -> list[Packet]:
    """The packets of a source; mistakes are in `diagnostics` and their elements left out."""
    return Parser(diagnostics).packets()
