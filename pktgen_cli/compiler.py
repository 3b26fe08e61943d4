"""Syntax tree to Program, as a short list of passes: parse, build each packet, settle it.

Every mistake of a source is collected before ConfigError is raised; warnings are left
in the diagnostics for the caller to show.
"""

from __future__ import annotations

from dataclasses import dataclass

from pktgen_cli.assembly import Draft
from pktgen_cli.diagnostics import Diagnostics, Source, Span, nearest
from pktgen_cli.errors import ConfigError
from pktgen_cli.functions import FUNCTIONS, Arguments, Function
from pktgen_cli.lang import syntax
from pktgen_cli.lang.expression import evaluate
from pktgen_cli.lang.lexer import call_numbers, words_in
from pktgen_cli.lang.parser import parse
from pktgen_cli.program import MAX_FRAME, Op, Packet, Program
from pktgen_cli.proto import PLANNED

MAX_TOTAL = 2**30
"""Bytes of all packets of a description together: what a typing mistake in a count must not exceed."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A Program and the warnings that came with it."""

    program: Program
    diagnostics: Diagnostics


def compile_source(source: Source, *, seed: int, strict: bool = False, random_order: bool = False) -> Compiled:
    """The Program of a description.

    `strict` makes each warning an error. Raises ConfigError with all messages when
    anything is wrong.
    """
    diagnostics = Diagnostics(source, strict)
    builder = _Builder(diagnostics, seed)
    packets = [builder.packet(tree, number) for number, tree in enumerate(parse(diagnostics))]
    if diagnostics.errors:
        raise ConfigError(diagnostics)
    return Compiled(Program(tuple(packets), seed, random_order), diagnostics)


class _Builder:
    """Builds the packets of one source.

    Descriptions repeat themselves, so what a call of plain numbers means is kept by its
    text: the bytes or the one op that it adds, else the function with its arguments.
    """

    def __init__(self, diagnostics: Diagnostics, seed: int) -> None:
        self.diagnostics = diagnostics
        self.seed = seed
        self.total = 0
        self.known: dict[str, bytes | Op] = {}
        self.known_calls: dict[str, tuple[Function, str, list[int]]] = {}

    def packet(self, tree: syntax.Packet, number: int) -> Packet:
        draft = Draft(number, self.seed)
        data = draft.data
        for element in tree.elements:
            if isinstance(element, syntax.Bytes):
                data += element.data
            elif isinstance(element, syntax.PlainCall):
                self.plain_call(element, draft)
            elif isinstance(element, syntax.Number):
                self.number(element, data)
            else:
                assert isinstance(element, syntax.Call)
                self.call(element, draft)
            if len(data) > MAX_FRAME:
                self.diagnostics.error(element.span, f"the packet is longer than {MAX_FRAME} bytes")
                break
        self.total += len(data)
        if self.total > MAX_TOTAL:
            self.diagnostics.error(tree.span, f"the packets up to here have more than {MAX_TOTAL} bytes together")
            raise ConfigError(self.diagnostics)
        draft.run_checks()
        if self.diagnostics.found and self.diagnostics.errors:
            return Packet(b"")
        selector = tree.selector
        return draft.finish(None if selector is None else (selector.first, selector.last))

    def number(self, element: syntax.Number, data: bytearray) -> None:
        if element.value > 0xFF:
            cut = element.value & 0xFF
            self.diagnostics.warn(
                element.span, f"{element.value} does not fit in a byte: cut to {cut:#04x}",
                "write c16(...) or c32(...) for more bytes",
            )  # fmt: skip
        data.append(element.value & 0xFF)

    def plain_call(self, call: syntax.PlainCall, draft: Draft) -> None:
        text = call.text
        known = self.known.get(text)
        if isinstance(known, bytes):
            draft.data += known
            return
        if known is not None:
            draft.repeat_op(known)
            return
        if text not in self.known_calls:
            name, numbers = call_numbers(text)
            function = FUNCTIONS.get(name.lower())
            if function is None or not function.least <= len(numbers) <= function.most:
                self.call(self.tree_of(call), draft)
                return
            self.known_calls[text] = function, name.lower(), list(numbers)
        function, name, values = self.known_calls[text]
        before, ops, messages = len(draft.data), len(draft.ops), len(self.diagnostics.found)
        self.emit(function, name, values, call, draft)
        if messages != len(self.diagnostics.found):
            return
        if function.adds == "bytes":
            self.known[text] = bytes(draft.data[before:])
        elif function.adds == "op" and len(draft.ops) > ops:
            self.known[text] = draft.ops[-1]

    def tree_of(self, call: syntax.PlainCall) -> syntax.Call:
        name, values = call_numbers(call.text)
        places = words_in(self.diagnostics.source.text, call.start, call.end)
        arguments: list[syntax.Expression] = [
            syntax.Number(place.start, place.end, value) for place, value in zip(places[1:], values)
        ]
        return syntax.Call(call.start, call.end, name, places[0].end, arguments)

    def call(self, call: syntax.Call, draft: Draft) -> None:
        name = call.name.lower()
        function = FUNCTIONS.get(name)
        if function is None:
            _unknown(call, name, self.diagnostics)
            return
        write = f"write {name}{function.signature[function.signature.index('(') :]}"
        if call.arguments is None:
            self.diagnostics.error(call.name_span, f"{name} needs arguments", write)
            return
        if call.fields:
            self.diagnostics.error(call.span, f"{name} takes plain numbers", write)
            return
        values = [evaluate(argument, self.diagnostics) for argument in call.arguments]
        if not function.least <= len(values) <= function.most:
            self.diagnostics.error(call.span, _arity(function, name, len(values)), write)
            return
        self.emit(function, name, values, call, draft)

    def emit(
        self, function: Function, name: str, values: list[int], call: syntax.Call | syntax.PlainCall, draft: Draft
    ) -> None:
        def report(severity: str, index: int, message: str, hints: tuple[str, ...]) -> None:
            tree = self.tree_of(call) if isinstance(call, syntax.PlainCall) else call
            span = call.span if index < 0 else (tree.arguments or [])[index].span
            if severity == "error":
                self.diagnostics.error(span, message, *hints)
            else:
                self.diagnostics.warn(span, message, *hints)

        function.emit(draft, Arguments(name, values, report))


def _arity(function: Function, name: str, given: int) -> str:
    wanted = str(function.least) if function.least == function.most else f"{function.least} to {function.most}"
    return f"{name} takes {wanted} argument{'s' if wanted != '1' else ''}, not {given}"


def _unknown(call: syntax.Call, name: str, diagnostics: Diagnostics) -> None:
    span: Span = call.name_span
    if name in PLANNED:
        diagnostics.error(
            span,
            f"typed headers such as {name}() are not there yet",
            "write the header's bytes, or c16(), csumip() ...",
        )
        return
    near = nearest(name, [*FUNCTIONS, *PLANNED])
    hints = [f"did you mean {near}?"] if near else []
    if call.arguments is None:
        hints.append(f'for text write "{call.name}"')
    what = "word" if call.arguments is None else "function"
    diagnostics.error(span, f"unknown {what} {call.name}", *hints)
