"""The value of a constant expression.

64-bit two's complement, wrapping. All binary operators have one precedence and
associate to the left, as in trafgen; where C would read another value a warning shows
both readings (semantics section 2).
"""

from __future__ import annotations

from pktgen_cli.diagnostics import Diagnostics
from pktgen_cli.lang.syntax import Chain, Expression, Negated, Number, Parens

MAX_SHOWN = 40
"""Operators up to which a warning spells out both readings."""

_C_LEVEL = {"*": 5, "/": 5, "%": 5, "+": 4, "-": 4, "<<": 3, ">>": 3, "&": 2, "^": 1, "|": 0}


class _Impossible(Exception):
    """An operation without a value; the argument says why."""


def signed(value: int) -> int:
    """The low 64 bits as a two's complement number."""
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value


def _apply(operator: str, left: int, right: int) -> int:
    if operator == "+":
        return signed(left + right)
    if operator == "-":
        return signed(left - right)
    if operator == "*":
        return signed(left * right)
    if operator == "&":
        return left & right
    if operator == "|":
        return left | right
    if operator == "^":
        return left ^ right
    if operator in ("<<", ">>"):
        if not 0 <= right < 64:
            raise _Impossible(f"shift count {right} is outside 0..63")
        return signed(left << right) if operator == "<<" else left >> right
    if right == 0:
        raise _Impossible("division by zero" if operator == "/" else "remainder by zero")
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    return signed(quotient if operator == "/" else left - quotient * right)


def evaluate(expression: Expression, diagnostics: Diagnostics) -> int:
    """The value: of a plain number as it stands, up to 2^64 - 1, of anything computed signed.

    An impossible operation is reported and counts as 0.
    """
    if isinstance(expression, Number):
        return expression.value
    if isinstance(expression, Negated):
        return signed(-evaluate(expression.operand, diagnostics))
    if isinstance(expression, Parens):
        return evaluate(expression.inner, diagnostics)
    return _chain(expression, diagnostics)


def _chain(chain: Chain, diagnostics: Diagnostics) -> int:
    values = [signed(evaluate(operand, diagnostics)) for operand in chain.operands]
    total = values[0]
    for i, operator in enumerate(chain.operators):
        try:
            total = _apply(operator, total, values[i + 1])
        except _Impossible as why:
            diagnostics.error(chain.operands[i + 1].span, str(why))
            return 0
    if len({_C_LEVEL[operator] for operator in chain.operators}) > 1:
        _warn_if_c_differs(chain, values, total, diagnostics)
    return total


def _warn_if_c_differs(chain: Chain, values: list[int], total: int, diagnostics: Diagnostics) -> None:
    shown = len(chain.operators) <= MAX_SHOWN
    text = diagnostics.source.text
    words = [" ".join(text[o.start : o.end].split()) if shown else "" for o in chain.operands]
    other, theirs = _c_reading(chain.operators, values, words if shown else None)
    if other == total:
        return
    c_value = "no value" if other is None else str(other)
    reading = f"from the left = {total}; C reads {c_value}"
    if shown:
        ours = words[0]
        for operator, word in zip(chain.operators, words[1:]):
            ours = f"({ours} {operator} {word})"
        reading = f"as {ours[1:-1]} = {total}; C reads {theirs[1:-1]} = {c_value}"
    diagnostics.warn(
        chain.span, f"operators have one precedence: read {reading}", "write the parentheses that you mean"
    )


def _c_reading(operators: list[str], values: list[int], words: list[str] | None) -> tuple[int | None, str]:
    """Value and (where `words` are given) text of the chain with C's precedence, by an operator stack."""
    texts = words or [""] * len(values)
    stack_values: list[int | None] = [values[0]]
    stack_words = [texts[0]]
    pending: list[str] = []

    def reduce() -> None:
        operator = pending.pop()
        right, right_word = stack_values.pop(), stack_words.pop()
        left, left_word = stack_values.pop(), stack_words.pop()
        try:
            value = None if left is None or right is None else _apply(operator, left, right)
        except _Impossible:
            value = None
        stack_values.append(value)
        stack_words.append(f"({left_word} {operator} {right_word})" if words else "")

    for operator, value, word in zip(operators, values[1:], texts[1:]):
        while pending and _C_LEVEL[pending[-1]] >= _C_LEVEL[operator]:
            reduce()
        pending.append(operator)
        stack_values.append(value)
        stack_words.append(word)
    while pending:
        reduce()
    return stack_values[0], stack_words[0]
