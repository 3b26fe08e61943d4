# PACKET_TX_RING, TPACKET_V2. The kernel walks the slots in order and stops at the first that is
# not a send request (net/packet/af_packet.c, tpacket_snd), so they are filled strictly in
# order. PACKET_LOSS stays off: with it the kernel drops what it cannot send and says nothing.
# A slot is counted when the kernel gives it back, and never written before.

cdef enum:
    RING_OFFSET = 34        # PACKET_TX_HAS_OFF: the network header, 14 bytes on, starts on a multiple of 16
    RING_BUSY = 7           # SEND_REQUEST | SENDING | WRONG_FORMAT; timestamp bits may stand beside


cdef inline bint slot_is_free(uint32_t status) noexcept nogil:
    return status & RING_BUSY == 0


def ring_slot_is_free(uint32_t status):
    """Whether a TX slot with that tp_status belongs to user space; timestamp bits do not count."""
    return slot_is_free(status)


def ring_geometry(uint32_t max_length, uint32_t slots, uint32_t page=4096):
    """(slot size, block size, blocks) for frames of that length: as small as fits, `slots` exactly.

    The kernel wants blocks of whole pages that slots fill without rest, and slot sizes in
    multiples of 16 (Documentation/networking/packet_mmap.rst).
    """
    if slots < 1:
        raise ValueError("a ring needs at least one slot")
    size = 256
    while size < RING_OFFSET + max_length:
        size *= 2
    while size < page and (slots * size) % page:
        size *= 2
    block = max(page, size)
    return size, block, slots * size // block


cdef class TxRing(TxSocket):
    """A ring of `slots` slots of at least `slot_size` bytes, each for one frame up to `max_length`."""

    cdef uint8_t* ring
    cdef size_t ring_size
    cdef uint32_t slots
    cdef uint32_t next
    cdef uint32_t head

    def __init__(
        self, str link, int ifindex, *, uint32_t max_length, bint bypass=True, uint32_t slots=256,
        uint32_t slot_size=0,
    ):
        cdef int version = TPACKET_V2, one = 1
        cdef tpacket_req request
        self.max_length = max_length
        if max_length > (1 << 22):
            raise os_error(EMSGSIZE, "PACKET_TX_RING", link)
        needed = max(max_length, slot_size - RING_OFFSET if slot_size > RING_OFFSET else 0)
        self.frame_size, block, blocks = ring_geometry(needed, slots)
        self.slots = slots
        self.open_packet_socket(link, ifindex, bypass)
        if setsockopt(self.fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0:
            raise os_error(errno, "PACKET_VERSION", link)
        if setsockopt(self.fd, SOL_PACKET, PACKET_TX_HAS_OFF, &one, sizeof(one)) < 0:
            raise os_error(errno, "PACKET_TX_HAS_OFF", link)
        request.tp_block_size, request.tp_block_nr = block, blocks
        request.tp_frame_size, request.tp_frame_nr = self.frame_size, slots
        if setsockopt(self.fd, SOL_PACKET, PACKET_TX_RING, &request, sizeof(request)) < 0:
            raise os_error(errno, f"PACKET_TX_RING of {blocks} blocks of {block} bytes", link)
        self.ring_size = <size_t>block * <size_t>blocks
        memory = mmap(NULL, self.ring_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, self.fd, 0)
        if memory == MAP_FAILED:
            raise os_error(errno, "mmap", link)
        self.ring = <uint8_t*>memory
        self.bind_link(link)

    def __dealloc__(self):
        self.unmap()

    def close(self):
        """Unmap and close. The kernel discards what it has not sent yet; none of that was counted."""
        self.unmap()
        TxSocket.close(self)

    cdef void unmap(self) noexcept:
        if self.ring != NULL:
            munmap(self.ring, self.ring_size)
        self.ring = NULL

    cdef inline tpacket2_hdr* slot(self, uint32_t number) noexcept nogil:
        return <tpacket2_hdr*>(self.ring + <size_t>(number % self.slots) * self.frame_size)

    cdef void reap(self) noexcept nogil:
        """Count the slots that came back, oldest first."""
        cdef tpacket2_hdr* header
        cdef uint64_t packets = 0, octets = 0
        while self.queued:
            header = self.slot(self.head)
            if not slot_is_free(load32(&header.tp_status)):
                break
            octets += header.tp_len
            packets += 1
            self.head = (self.head + 1) % self.slots
            self.queued -= 1
        count_accepted(self.counters, packets, octets)

    cdef uint32_t room(self) noexcept nogil:
        cdef uint32_t i, count
        self.reap()
        count = min(<uint32_t>BATCH, self.slots - self.queued)
        for i in range(count):
            self.frame[i] = <uint8_t*>self.slot(self.next + i) + RING_OFFSET
        return count

    cdef int submit(self, uint32_t count) noexcept nogil:
        cdef tpacket2_hdr* header
        cdef uint32_t i
        cdef int failed = 0
        for i in range(count):
            header = self.slot(self.next)
            header.tp_len = self.length[i]
            header.tp_snaplen = self.length[i]
            header.tp_mac = RING_OFFSET
            header.tp_net = RING_OFFSET + 14
            store32(&header.tp_status, TP_STATUS_SEND_REQUEST)
            self.next = (self.next + 1) % self.slots
        self.queued += count
        if send(self.fd, NULL, 0, MSG_DONTWAIT) < 0:
            failed = -errno
        self.reap()
        return failed

    cdef void skip(self) noexcept nogil:
        """Give up the frame where the kernel stands: the frames behind it move up one slot."""
        cdef tpacket2_hdr* header
        cdef tpacket2_hdr* behind
        cdef uint32_t at = self.head
        cdef uint32_t left = self.queued
        while left and load32(&self.slot(at).tp_status) & TP_STATUS_SENDING:
            at = (at + 1) % self.slots
            left -= 1
        if left == 0:
            return
        while left > 1:
            header, behind = self.slot(at), self.slot(at + 1)
            header.tp_len = header.tp_snaplen = behind.tp_len
            memcpy(<uint8_t*>header + RING_OFFSET, <uint8_t*>behind + RING_OFFSET, behind.tp_len)
            store32(&header.tp_status, TP_STATUS_SEND_REQUEST)
            at = (at + 1) % self.slots
            left -= 1
        store32(&self.slot(at).tp_status, TP_STATUS_AVAILABLE)
        self.next = at
        self.queued -= 1

    cdef void wait(self, int milliseconds) noexcept nogil:
        """POLLOUT says that the kernel's next slot is free; a timestamp bit hides it, so never wait long."""
        if self.queued == self.slots:
            poll_out(self.fd, 1)
        else:
            sleep_ns(100_000)
