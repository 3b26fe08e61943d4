"""Which CPUs the workers are pinned to (-P)."""

from __future__ import annotations

import os

from pktgen_cli.errors import UsageError

MAX_WORKERS = 4096


def parse_cpus(text: str | None) -> tuple[int, ...]:
    """A CPU for each worker, in worker order.

    N is a number of workers, on the CPUs this process may use, from the lowest, again from
    the start where N is larger; 0 or nothing is one worker for each. A list such as
    0-3,8 names the CPUs.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if text is None:
        return tuple(allowed)
    if "-" not in text and "," not in text:
        count = _number(text, text)
        if count > MAX_WORKERS:
            raise UsageError(f"-P {text}: more than {MAX_WORKERS} workers")
        return tuple(allowed[i % len(allowed)] for i in range(count)) or tuple(allowed)
    cpus: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low = _number(first, text)
        high = _number(last, text) if dash else low
        if high < low:
            raise UsageError(f"-P {text}: {part} counts backwards")
        if high - low >= MAX_WORKERS or len(cpus) >= MAX_WORKERS:
            raise UsageError(f"-P {text}: more than {MAX_WORKERS} workers")
        cpus += range(low, high + 1)
    missing = sorted(set(cpus) - set(allowed))
    if missing:
        raise UsageError(
            f"-P {text}: CPU {', '.join(map(str, missing[:8]))} cannot be used here",
            f"this process may use CPU {', '.join(map(str, allowed))}",
        )
    return tuple(cpus)


def _number(text: str, whole: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"-P {whole}: write a number of workers, or a list of CPUs such as 0-3,8")
    return int(text)
