# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, embedsignature.format=clinic, auto_pickle=False
"""The compiled half of pktgen: executes packed Programs and moves frames.

The contract with the Python half is `_fastpath.pyi`. This file is the spine, the send loop;
its pieces are in `pktgen_cli/fastpath`, one file a backend.
"""

from libc.errno cimport EAGAIN, EINTR, EMSGSIZE, ENETDOWN, ENOBUFS, ENODEV, ENOMEM, ENXIO, ESRCH, errno
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from pktgen_cli.fastpath.clock cimport monotonic_ns, sleep_ns
from pktgen_cli.fastpath.compat cimport (
    aligned_alloc, catch_signal, cpu_relax, load32, load64, muldiv64, put_be16, put_be32, put_be64, store32, store64,
)
from pktgen_cli.fastpath.csum cimport fold, sum_bytes
from pktgen_cli.fastpath.if_packet cimport (
    ETHTOOL_GLINK, IFF_RUNNING, PACKET_QDISC_BYPASS, PACKET_TX_HAS_OFF, PACKET_TX_RING, PACKET_VERSION,
    SIOCETHTOOL, SIOCGIFFLAGS, SIOCGIFNAME, SO_SNDBUFFORCE, TP_STATUS_AVAILABLE, TP_STATUS_SEND_REQUEST,
    TP_STATUS_SENDING, TPACKET_V2, ethtool_value, ifreq, sockaddr_ll, tpacket2_hdr, tpacket_req,
)
from pktgen_cli.fastpath.rng cimport random_fill, random_word
from pktgen_cli.fastpath.socket cimport (
    AF_PACKET, MAP_FAILED, MAP_POPULATE, MAP_SHARED, MSG_DONTWAIT, O_CLOEXEC, O_CREAT, O_TRUNC, O_WRONLY,
    POLLOUT, PROT_READ, PROT_WRITE, PR_SET_PDEATHSIG, PR_SET_TIMERSLACK, SEEK_CUR, SIGKILL, SIGTERM,
    SOCK_CLOEXEC, SOCK_RAW, SOL_PACKET, SOL_SOCKET, SO_SNDBUF, bind, close_fd, ftruncate, getppid,
    ioctl, iovec, lseek, mmap, mmsghdr, munmap, open_file, poll, pollfd, prctl, send, sendmmsg,
    setsockopt, sockaddr, socket, write_fd,
)

include "pktgen_cli/fastpath/errno.pxi"
include "pktgen_cli/fastpath/counters.pxi"
include "pktgen_cli/fastpath/worker.pxi"
include "pktgen_cli/fastpath/program.pxi"
include "pktgen_cli/fastpath/pace.pxi"
include "pktgen_cli/fastpath/tx.pxi"
include "pktgen_cli/fastpath/tx_mmsg.pxi"
include "pktgen_cli/fastpath/tx_ring.pxi"
include "pktgen_cli/fastpath/tx_pcap.pxi"
include "pktgen_cli/fastpath/tx_null.pxi"

TX_BACKENDS = {"mmsg": TxMmsg, "ring": TxRing, "pcap": TxPcap, "null": TxNull}

cdef enum Reason:           # why a worker ended; 0: go on
    GO_ON = 0
    SENT = 1                # every slot was sent
    DEADLINE = 2            # the duration is over
    STOPPED = 3             # the parent or SIGTERM said so
    LINK_GONE = 4           # deleted, or moved to another namespace
    LINK_DOWN = 5           # with `stop_on_down`
    FAILED = 6              # an error that no waiting mends; its errno is in the counters
    STUCK = 7               # the kernel keeps queued frames and says nothing

cdef enum:
    SPIN_NS = 100_000       # sleep until this long before a slot is due, then spin
    NAP_NS = 20_000_000     # longest sleep without a look at `stop`
    WAIT_NS = 1_000_000     # for frames that the kernel has not given back yet
    DRAIN_NS = 100_000_000  # for frames in the ring after a stop
    STUCK_MS = 5_000
    LATE_NS = 500_000_000   # a worker that lost more than this (suspended, say) does not catch up
    BACKOFF_MIN_NS = 10_000
    BACKOFF_MAX_NS = 1_000_000

ctypedef struct run_t:
    control_t* control
    group_t* group
    uint32_t groups
    uint64_t turn           # group whose packet is next, without pacing
    bint paced
    bint own_time           # due times are the frames' own, and nothing is waited for (capture files)
    bint stop_on_down
    uint64_t duration       # nanoseconds, 0 for none
    uint64_t start          # CLOCK_MONOTONIC of slot 0, later by `shift` after pauses
    uint64_t shift
    uint64_t deadline       # CLOCK_MONOTONIC, 0 for none
    uint64_t next_due
    uint64_t backoff
    uint64_t progress       # CLOCK_MONOTONIC of the last acceptance
    bint exhausted
    bint cut                # slots were left out because they are due after the duration
    bint doubted            # the link was seen down once, and the frame tried again


def transmit(Program program, TxSocket tx, bytes groups, bytes turns, memory, int worker, *,
             bint paced=False, bint own_time=False, uint64_t duration=0, bint stop_on_down=False):
    """Send this worker's slots until they, the duration or the link end; the reason.

    `paced`: no frame before its slot is due; `own_time`: due times are written instead of waited for.
    `memory` is the shared counter memory (see stats.py): the control words, then a block a
    worker. Waits there for the start time. Does not hold the GIL.
    """
    cdef run_t run
    cdef const uint8_t[::1] view = memory
    cdef uint32_t i
    cdef turn_t* turn = NULL
    cdef group_record_t* record = <group_record_t*><const char*>groups
    cdef int reason
    if len(view) < (worker + 2) * COUNTERS_WORDS * 8 or program.max_length > tx.max_length:
        raise ValueError("counter memory or frames are too small")
    memset(&run, 0, sizeof(run))
    memset(tx.holds, 0xFF, sizeof(tx.holds))
    run.control = <control_t*>&view[0]
    tx.counters = <counters_t*>&view[(worker + 1) * COUNTERS_WORDS * 8]
    run.groups = len(groups) // sizeof(group_record_t)
    run.paced, run.own_time, run.stop_on_down = paced, own_time, stop_on_down
    run.duration = duration
    run.group = <group_t*>malloc(max(1, run.groups) * sizeof(group_t))
    turn = <turn_t*>malloc(len(turns) + 1)
    try:
        if run.group == NULL or turn == NULL:
            raise MemoryError
        memcpy(turn, <const char*>turns, len(turns))
        for i in range(run.groups):
            if (<uint64_t>record[i].first_turn + record[i].turns) * sizeof(turn_t) > <uint64_t>len(turns):
                raise ValueError("packed schedule is damaged")
            if record[i].turns == 0 or record[i].den == 0 or record[i].stride == 0:
                raise ValueError("packed schedule is damaged")
            group_start(&run.group[i], &record[i], turn)
        for i in range(len(turns) // sizeof(turn_t)):
            if turn[i].packet >= program.packets:
                raise ValueError("packed schedule is damaged")
        with nogil:
            tx.counters.state = READY
            while load64(&run.control.start_ns) == 0 and not stopping(&run):
                sleep_ns(100_000)
            if own_time:
                tx.counters.first_ns = monotonic_ns()
            reason = send_slots(program, tx, &run)
            if own_time:
                tx.counters.last_ns = monotonic_ns()
            store64(&tx.counters.reason, reason)
            store64(&tx.counters.queued, tx.queued)
            store64(&tx.counters.state, ENDED)
    finally:
        free(run.group)
        free(turn)
        tx.counters = &tx.own_counters
    return reason


cdef int send_slots(Program program, TxSocket tx, run_t* run) noexcept nogil:
    """The send loop: build what is due, hand it over, deal with refusals, wait."""
    cdef uint32_t room, count
    cdef uint64_t before, now
    cdef int failed, reason
    run.start = load64(&run.control.start_ns)
    run.deadline = run.start + run.duration if run.duration and not (run.own_time and run.paced) else 0
    while not run.own_time and monotonic_ns() < run.start and not stopping(run):
        cpu_relax()
    tx.counters.state = RUNNING
    run.progress = run.start
    while True:
        if stopping(run):
            return drain(tx)
        if run.deadline and monotonic_ns() >= run.deadline:
            reason = drain(tx)
            return DEADLINE if reason == STOPPED else reason
        count = 0
        room = 0 if run.exhausted else tx.room()
        if room:
            count = fill(program, tx, run, room)
        if count or tx.queued:
            before = tx.counters.tx_packets
            failed = tx.submit(count)
            now = 0 if run.own_time else monotonic_ns()
            if count:
                run.progress = now
            if tx.counters.tx_packets != before and not run.own_time:
                if tx.counters.first_ns == 0:
                    tx.counters.first_ns = now
                tx.counters.last_ns = run.progress = now
                if not failed:
                    run.backoff = 0
                    run.doubted = False
                    tx.counters.state = RUNNING
            if failed:
                reason = recover(tx, run, -failed)
                if reason:
                    return reason
            elif tx.queued and tx.counters.tx_packets == before and (room == 0 or count == 0):
                if (now - run.progress) // 1_000_000 > STUCK_MS:
                    return STUCK
                if room and run.paced:
                    wait_until(run, min(run.start + run.next_due, now + WAIT_NS))
                else:
                    tx.wait(1)
        elif run.exhausted:
            failed = tx.finish()
            if failed:
                return STOPPED if failed == -EINTR else fail(tx, -failed)
            if not run.cut:
                return SENT
            if not run.deadline:
                return DEADLINE
            wait_until(run, run.deadline)
        else:
            wait_until(run, run.start + run.next_due)


cdef inline uint32_t fill(Program program, TxSocket tx, run_t* run, uint32_t room) noexcept nogil:
    """Build frames of the next slots that are due, at most `room`; how many."""
    cdef group_t* group
    cdef turn_t* turn
    cdef uint64_t now = 0, m
    cdef uint32_t count = 0, packet
    if run.paced and not run.own_time:
        now = monotonic_ns()
        now = now - run.start if now > run.start else 0
    while count < room:
        group = next_group(run)
        if group == NULL:
            run.exhausted = True
            break
        if run.paced:
            if not run.own_time and group.due > now:
                run.next_due = group.due
                break
            if count == 0 and now > group.due + LATE_NS:
                shift_start(run, now - group.due)
                now = group.due
        if program.random_order:
            m = group.base + group.slot
            packet = group.turn[random_word(program.order_key, m) % group.turns].packet
        else:
            turn = group.turn + group.position
            packet = turn.packet
            m = group.round * turn.weight + turn.rank
        tx.length[count] = build(program, tx, count, packet, m)
        tx.time[count] = group.due
        count += 1
        group_advance(group)
        run.turn += 1
    return count


cdef inline group_t* next_group(run_t* run) noexcept nogil:
    """The group whose packet is next: in turn, or where slots have times the one due first. NULL: all are done."""
    cdef bint timed = run.paced or run.own_time
    cdef group_t* best = NULL
    cdef group_t* group
    cdef uint32_t i
    for i in range(run.groups):
        group = run.group + (i if timed else (run.turn + i) % run.groups)
        if group.slot >= group.end:
            continue
        if run.paced and run.duration and group.due + run.shift >= run.duration:
            run.cut = True
            continue
        if not timed:
            run.turn += i
            return group
        if best == NULL or group.due < best.due:
            best = group
    return best


cdef int recover(TxSocket tx, run_t* run, int code) noexcept nogil:
    """After a refusal of the frame at the head: wait, pause or give up; 0 to go on (semantics section 6)."""
    cdef int runs
    cdef uint64_t began
    count_refusal(tx.counters, code)
    if code == EINTR:
        return GO_ON
    if not tx.is_link:
        return fail(tx, code)
    if code == EAGAIN:
        tx.wait(10)
        return GO_ON
    if code == ENXIO or code == ENODEV:
        return LINK_GONE
    if code == ENOBUFS or code == ENETDOWN or code == ENOMEM:
        run.backoff = min(<uint64_t>BACKOFF_MAX_NS, max(<uint64_t>BACKOFF_MIN_NS, 2 * run.backoff))
        if code != ENETDOWN and run.backoff < BACKOFF_MAX_NS:
            sleep_ns(run.backoff)
            return GO_ON
        runs = tx.link_runs()
        if runs < 0:
            return LINK_GONE
        if code != ENETDOWN and runs:
            sleep_ns(run.backoff)
            return GO_ON
        if code != ENETDOWN and not run.doubted:
            run.doubted = True  # link_runs() has brought the kernel's view up to date: the qdisc path may take it now
            return GO_ON
        if run.stop_on_down:
            return LINK_DOWN
        if tx.counters.state != PAUSED:
            tx.counters.pauses += 1
            store64(&tx.counters.state, PAUSED)
        began = monotonic_ns()
        sleep_ns(NAP_NS)
        tx.counters.paused_ns += monotonic_ns() - began
        shift_start(run, monotonic_ns() - began)
        run.progress = monotonic_ns()
        return GO_ON
    tx.counters.abandoned += 1
    tx.skip()
    return GO_ON


cdef inline void shift_start(run_t* run, uint64_t later) noexcept nogil:
    """Slots of a run that lost time are due later, instead of all at once."""
    run.start += later
    run.shift += later


cdef int fail(TxSocket tx, int code) noexcept nogil:
    tx.counters.error = code
    return FAILED


cdef int drain(TxSocket tx) noexcept nogil:
    """After a stop: a short time for what the kernel has already been given."""
    cdef uint64_t end = monotonic_ns() + DRAIN_NS
    cdef int failed = tx.finish()
    if failed:
        return STOPPED if failed == -EINTR else fail(tx, -failed)
    if not tx.by_reference:
        while tx.queued and monotonic_ns() < end and tx.submit(0) == 0:
            tx.wait(1)
    return STOPPED


cdef inline bint stopping(run_t* run) noexcept nogil:
    return terminated or load64(&run.control.stop) != 0


cdef void wait_until(run_t* run, uint64_t due) noexcept nogil:
    """Sleep, then spin; back early on a stop, or at the deadline."""
    cdef uint64_t now
    if run.own_time:
        return
    if run.deadline and due > run.deadline:
        due = run.deadline
    while not stopping(run):
        now = monotonic_ns()
        if now >= due:
            return
        if due - now > SPIN_NS:
            sleep_ns(min(<uint64_t>NAP_NS, due - now - SPIN_NS))
        else:
            cpu_relax()


RING_HEADER = RING_OFFSET
LAYOUT = {
    "packet": sizeof(packet_t), "op": sizeof(op_t), "checksum": sizeof(checksum_t), "term": sizeof(term_t),
    "group": sizeof(group_record_t), "turn": sizeof(turn_t), "counters_words": COUNTERS_WORDS,
    "errno_max": ERRNO_MAX, "batch": BATCH,
}
OP_CODES = {
    "COUNTER": OP_COUNTER, "STRIDE": OP_STRIDE, "CARRY": OP_CARRY, "RANDOM": OP_RANDOM, "BYTES": OP_BYTES,
    "TABLE": OP_TABLE, "CHOICE": OP_CHOICE, "LENGTH": OP_LENGTH,
}
REASONS = {
    "SENT": SENT, "DEADLINE": DEADLINE, "STOPPED": STOPPED, "LINK_GONE": LINK_GONE, "LINK_DOWN": LINK_DOWN,
    "FAILED": FAILED, "STUCK": STUCK,
}
