"""The syntax tree: slotted nodes, each with a half-open range of byte offsets.

A run of plain bytes is one `Bytes` node; where its elements stand is found again from
the text when a message needs it, because one object a byte would cost more than
compiling.
"""

from __future__ import annotations

from dataclasses import dataclass

from pktgen_cli.diagnostics import Span


@dataclass(slots=True)
class Node:
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


@dataclass(slots=True)
class Number(Node):
    """A number, character or bare letter, 0 to 2^64 - 1."""

    value: int


@dataclass(slots=True)
class Negated(Node):
    operand: Expression


@dataclass(slots=True)
class Parens(Node):
    inner: Expression


@dataclass(slots=True)
class Chain(Node):
    """operand, operator, operand ... of one nesting level, in the order of the text."""

    operands: list[Expression]
    operators: list[str]


Expression = Number | Negated | Parens | Chain


@dataclass(slots=True)
class Bytes(Node):
    """Literal bytes: a run of numbers that all fit, or a string."""

    data: bytes


@dataclass(slots=True)
class Call(Node):
    """name(arguments). `arguments` is None where there are no parentheses at all.

    `fields` marks `name = value` parameters inside: the arguments were skipped, not parsed.
    """

    name: str
    name_end: int
    arguments: list[Expression] | None
    fields: bool = False

    @property
    def name_span(self) -> Span:
        return Span(self.start, self.name_end)


@dataclass(slots=True)
class PlainCall(Node):
    """name(1, 2): a call whose arguments are all plain numbers, kept as its text."""

    text: str


Element = Bytes | Number | Call | PlainCall


@dataclass(slots=True)
class Selector(Node):
    """cpu(first-last):, both inclusive, in ascending order."""

    first: int
    last: int


@dataclass(slots=True)
class Packet(Node):
    selector: Selector | None
    elements: list[Element]
