# sendmmsg on AF_PACKET: works on every link, and is the fastest way through a packet socket.

cdef class TxMmsg(TxSocket):
    """`link` is for messages; frames go to `ifindex`. OSError names what failed."""

    cdef mmsghdr message[BATCH]
    cdef iovec vector[BATCH]
    cdef uint32_t head

    def __init__(self, str link, int ifindex, *, uint32_t max_length, bint bypass=True):
        cdef uint32_t i
        self.by_reference = True
        self.make_frames(max_length)
        memset(self.message, 0, sizeof(self.message))
        for i in range(BATCH):
            self.message[i].msg_hdr.msg_iov = &self.vector[i]
            self.message[i].msg_hdr.msg_iovlen = 1
        self.open_packet_socket(link, ifindex, bypass)
        self.bind_link(link)

    cdef int submit(self, uint32_t count) noexcept nogil:
        cdef uint32_t i
        cdef uint64_t octets = 0
        cdef int sent
        if count:
            for i in range(count):
                self.vector[i].iov_base = self.frame[i]
                self.vector[i].iov_len = self.length[i]
            self.head = 0
            self.queued = count
        sent = sendmmsg(self.fd, &self.message[self.head], self.queued, MSG_DONTWAIT)
        if sent < 0:
            return -errno
        for i in range(self.head, self.head + sent):
            octets += self.length[i]
        count_accepted(self.counters, sent, octets)
        self.head += sent
        self.queued -= sent
        return 0

    cdef void skip(self) noexcept nogil:
        self.head += 1
        self.queued -= 1

    cdef void wait(self, int milliseconds) noexcept nogil:
        poll_out(self.fd, milliseconds)
