# The one interface of all backends: a queue of frames between the send loop and the kernel.
#
#   room()      frames that may be built now; `frame[0..n-1]` is where, at least `max_length`
#               bytes each. 0 while frames of before are still waiting.
#   submit(n)   hands over n newly built frames, then as much of the queue as the kernel
#               takes. 0 or a negative errno of the frame at the head, which stays there.
#   skip()      gives the frame at the head up.
#   wait(ms)    until there may be room again.
#
# `queued` frames are handed over but not yet accepted. Acceptance is counted here and
# nowhere else, so a frame is counted once, when the kernel took it. A backend that reads frames
# only until submit() returns sets `by_reference`: static packets are then not copied.

cdef enum:
    BATCH = 64
    BATCH_BYTES = 1 << 23   # huge frames go in smaller batches

cdef class TxSocket:
    """A way out for frames. Open on construction; `close` may be called again.

    `max_length` is the largest frame in bytes. Subclasses add what they send to.
    """

    cdef counters_t* counters
    cdef counters_t own_counters
    cdef uint8_t* frame[BATCH]
    cdef uint32_t length[BATCH]
    cdef uint64_t time[BATCH]      # of each frame, nanoseconds after the start
    cdef uint32_t holds[BATCH]     # packet whose template stands in frame memory i; -1: none
    cdef uint8_t* memory
    cdef size_t frame_size
    cdef uint32_t batch            # frames that are built before they are handed over
    cdef bint by_reference
    cdef bint is_link              # errors may be those of a link, and pass
    cdef uint32_t queued
    cdef readonly int fd
    cdef int ifindex
    cdef readonly uint32_t max_length

    def __cinit__(self, *args, **options):
        self.fd = -1
        self.counters = &self.own_counters
        memset(&self.own_counters, 0, sizeof(counters_t))
        memset(self.holds, 0xFF, sizeof(self.holds))

    cdef void make_frames(self, uint32_t max_length) except *:
        """Frame memory of this process; each frame starts on a cache line."""
        cdef uint32_t i
        self.max_length = max_length
        self.frame_size = (max_length + 63) // 64 * 64 + 64
        self.batch = max(1, min(BATCH, BATCH_BYTES // self.frame_size))
        self.memory = <uint8_t*>aligned_alloc(64, self.frame_size * self.batch)
        if self.memory == NULL:
            raise MemoryError
        memset(self.memory, 0, self.frame_size * self.batch)
        for i in range(self.batch):
            self.frame[i] = self.memory + i * self.frame_size

    def __dealloc__(self):
        if self.fd >= 0:
            close_fd(self.fd)
        free(self.memory)

    cdef uint32_t room(self) noexcept nogil:
        return self.batch if self.queued == 0 else 0

    cdef int submit(self, uint32_t count) noexcept nogil:
        return 0

    cdef void skip(self) noexcept nogil:
        pass

    cdef void wait(self, int milliseconds) noexcept nogil:
        sleep_ns(<uint64_t>milliseconds * 1000000)

    cdef int finish(self) noexcept nogil:
        """Before closing: write out what is buffered. 0 or a negative errno."""
        return 0

    def fileno(self):
        """The descriptor, -1 where there is none."""
        return self.fd

    def close(self):
        """Close the descriptor. Frames still queued are lost and were never counted."""
        if self.fd >= 0:
            close_fd(self.fd)
        self.fd = -1

    @property
    def accepted(self):
        """(packets, bytes) accepted so far."""
        return self.counters.tx_packets, self.counters.tx_bytes

    cdef void open_packet_socket(self, str link, int ifindex, bint bypass) except *:
        """AF_PACKET with protocol 0: nothing is ever received, so own frames do not come back (kernel 3.14)."""
        cdef sockaddr_ll address
        cdef int one = 1, size = 4 << 20
        self.is_link = True
        self.ifindex = ifindex
        self.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)
        if self.fd < 0:
            raise os_error(errno, "packet socket", link)
        if bypass and setsockopt(self.fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) < 0:
            raise os_error(errno, "PACKET_QDISC_BYPASS", link)
        if setsockopt(self.fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0:  # needs CAP_NET_ADMIN
            setsockopt(self.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size))
        memset(&address, 0, sizeof(address))
        address.sll_family = AF_PACKET
        address.sll_ifindex = ifindex

    cdef void bind_link(self, str link) except *:
        cdef sockaddr_ll address
        memset(&address, 0, sizeof(address))
        address.sll_family = AF_PACKET
        address.sll_ifindex = self.ifindex
        if bind(self.fd, <sockaddr*>&address, sizeof(address)) < 0:
            raise os_error(errno, "bind", link)

    cdef int link_runs(self) noexcept nogil:
        """1 when the link is up with carrier (IFF_RUNNING), 0 when not, -1 when it is gone.

        The flag follows the carrier with up to a second's delay (net/core/link_watch.c); asking ethtool for
        the carrier brings it up to date.
        """
        cdef ifreq request
        cdef ethtool_value carrier
        memset(&request, 0, sizeof(request))
        request.ifr_ifindex = self.ifindex
        if ioctl(self.fd, SIOCGIFNAME, &request) < 0:
            return -1
        carrier.cmd, carrier.data = ETHTOOL_GLINK, 0
        request.ifr_data = <char*>&carrier
        ioctl(self.fd, SIOCETHTOOL, &request)
        if ioctl(self.fd, SIOCGIFFLAGS, &request) < 0:
            return -1
        return 1 if request.ifr_flags & IFF_RUNNING else 0


cdef inline void poll_out(int fd, int milliseconds) noexcept nogil:
    cdef pollfd p
    p.fd, p.events, p.revents = fd, POLLOUT, 0
    poll(&p, 1, milliseconds)


cdef inline uint32_t build(Program program, TxSocket tx, uint32_t i, uint32_t packet, uint64_t m) noexcept nogil:
    """Make frame i of the batch; its length. Constant bytes are copied only when they are not there yet."""
    cdef const packet_t* p = program.packet + packet
    cdef uint8_t* template = program.data + p.data
    if tx.by_reference:
        if p.ops + p.checksums == 0:
            tx.frame[i] = template
            return p.length
        tx.frame[i] = tx.memory + i * tx.frame_size
        if tx.holds[i] != packet or p.flags & FLAG_VARIES:
            memcpy(tx.frame[i], template, p.length)
            tx.holds[i] = packet
    else:
        memcpy(tx.frame[i], template, p.length)
    return ops_apply(program, p, m, tx.frame[i])
