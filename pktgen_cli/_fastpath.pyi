"""The compiled half: executes packed Programs and moves frames.

Contract of the two halves. Python parses, compiles, packs (`packing.pack`,
`schedule.pack_worker`) and decides; this module copies those records, checks every index in them once, and then
runs without the GIL, without allocation and without a lock. It imports nothing of
`pktgen_cli`. Both sides meet in three places only:

- records: fixed-size structs in native byte order; `LAYOUT` gives their sizes, `OP_CODES` and
  `REASONS` their numbers, and a test holds them equal to the Python ones;
- counter memory: a writable buffer of 64-bit words, a control block and a block for each
  worker (`stats.py`), which one worker writes and anyone reads;
- errors: OSError with errno, what was being done, and the device or file. After the start
  nothing is raised: a run ends with a reason (`REASONS`) and its counts.
"""

from os import PathLike
from typing import Final

from _typeshed import ReadableBuffer
from typing_extensions import disjoint_base

LAYOUT: Final[dict[str, int]]
OP_CODES: Final[dict[str, int]]
REASONS: Final[dict[str, int]]
RING_HEADER: Final[int]
TX_BACKENDS: Final[dict[str, type[TxSocket]]]

@disjoint_base
class Program:
    """Owner of a packed Program's memory; immutable.

    `packed` is a `pktgen_cli.packing.Packed`. Every index and offset in it is checked here, so that
    executors need no checks; ValueError says that the records are damaged.
    """

    packets: int
    max_length: int
    def __init__(self, packed: object, *, random_order: bool = False, order_key: int = 0) -> None: ...
    def frame(self, packet: int, occurrence: int) -> bytes:
        """The bytes of that occurrence of that packet."""

@disjoint_base
class TxSocket:
    """A way out for frames. Open on construction; `close` may be called again."""

    fd: int
    max_length: int
    @property
    def accepted(self) -> tuple[int, int]:
        """(packets, bytes) accepted so far."""
    def __init__(self) -> None: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...

@disjoint_base
class TxMmsg(TxSocket):
    def __init__(self, link: str, ifindex: int, *, max_length: int, bypass: bool = True) -> None: ...

@disjoint_base
class TxRing(TxSocket):
    def __init__(
        self, link: str, ifindex: int, *, max_length: int, bypass: bool = True, slots: int = 256, slot_size: int = 0
    ) -> None: ...

@disjoint_base
class TxPcap(TxSocket):
    def __init__(self, path: str | PathLike[str], *, max_length: int, start_ns: int = 0) -> None: ...

class TxNull(TxSocket):
    def __init__(self, *, max_length: int) -> None: ...

def transmit(
    program: Program,
    tx: TxSocket,
    groups: bytes,
    turns: bytes,
    memory: ReadableBuffer,
    worker: int,
    *,
    paced: bool = False,
    own_time: bool = False,
    duration: int = 0,
    stop_on_down: bool = False,
) -> int: ...
def prepare_worker(parent: int) -> None: ...
def pace_walk(num: int, den: int, first: int, stride: int, count: int) -> list[int]: ...
def ring_slot_is_free(status: int) -> bool: ...
def ring_geometry(max_length: int, slots: int, page: int = 4096) -> tuple[int, int, int]: ...
