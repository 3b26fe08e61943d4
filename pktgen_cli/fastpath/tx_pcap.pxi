# Writes a capture file: classic pcap with nanoseconds, link type Ethernet
# (draft-ietf-opsawg-pcap). Frames are counted when write(2) took them whole.

cdef enum:
    PCAP_BUFFER = 1 << 20
    PCAP_SNAPLEN = 262144

ctypedef struct pcap_header_t:
    uint32_t magic
    uint16_t major
    uint16_t minor
    uint32_t zone
    uint32_t figures
    uint32_t snaplen
    uint32_t link_type

ctypedef struct pcap_record_t:
    uint32_t seconds
    uint32_t nanoseconds
    uint32_t captured
    uint32_t length


cdef class TxPcap(TxSocket):
    """`path` is created or truncated; times are `start_ns` (since 1970) plus each frame's own."""

    cdef uint8_t* buffer
    cdef size_t used
    cdef size_t size
    cdef uint64_t buffered
    cdef uint64_t start_ns

    def __init__(self, path, *, uint32_t max_length, uint64_t start_ns=0):
        import os
        cdef bytes name = os.fsencode(path)
        cdef pcap_header_t header
        self.by_reference = True
        self.make_frames(max_length)
        self.start_ns = start_ns
        self.size = max(PCAP_BUFFER, <size_t>4 * (max_length + sizeof(pcap_record_t)))
        self.buffer = <uint8_t*>malloc(self.size)
        if self.buffer == NULL:
            raise MemoryError
        self.fd = open_file(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        if self.fd < 0:
            raise os_error(errno, "open", os.fsdecode(name))
        header.magic, header.major, header.minor, header.zone, header.figures = 0xA1B23C4D, 2, 4, 0, 0
        header.snaplen, header.link_type = max(PCAP_SNAPLEN, max_length), 1
        memcpy(self.buffer, &header, sizeof(header))
        self.used = sizeof(header)
        cdef int failed = self.write_out()
        if failed:
            raise os_error(-failed, "write", os.fsdecode(name))

    def __dealloc__(self):
        free(self.buffer)

    cdef int submit(self, uint32_t count) noexcept nogil:
        cdef uint32_t i
        cdef int failed
        cdef pcap_record_t record
        for i in range(count):
            if self.used + sizeof(record) + self.length[i] > self.size:
                failed = self.write_out()
                if failed:
                    self.queued = count - i
                    return failed
            record.seconds = <uint32_t>((self.start_ns + self.time[i]) // 1000000000)
            record.nanoseconds = <uint32_t>((self.start_ns + self.time[i]) % 1000000000)
            record.captured = record.length = self.length[i]
            memcpy(self.buffer + self.used, &record, sizeof(record))
            memcpy(self.buffer + self.used + sizeof(record), self.frame[i], self.length[i])
            self.used += sizeof(record) + self.length[i]
            self.buffered += 1
        return 0

    cdef int write_out(self) noexcept nogil:
        """Write the buffer; on an error count the records that are whole in the file and cut the rest off."""
        cdef size_t done = 0, whole = 0
        cdef uint64_t packets = 0, octets = 0
        cdef ssize_t written
        cdef int failed = 0
        cdef pcap_record_t record
        while done < self.used:
            written = write_fd(self.fd, self.buffer + done, self.used - done)
            if written < 0 and (errno != EINTR or terminated):
                failed = -errno
                break
            done += max(written, 0)
            if terminated and done < self.used:  # a pipe whose reader does not read
                failed = -EINTR
                break
        if self.buffered == 0:
            whole = done
        while packets < self.buffered:
            memcpy(&record, self.buffer + whole, sizeof(record))
            if whole + sizeof(record) + record.captured > done:
                break
            whole += sizeof(record) + record.captured
            octets += record.captured
            packets += 1
        if failed and done > whole:
            cut_back(self.fd, done - whole)
        count_accepted(self.counters, packets, octets)
        self.used = 0
        self.buffered = 0
        return failed

    cdef int finish(self) noexcept nogil:
        return self.write_out()


cdef void cut_back(int fd, size_t octets) noexcept nogil:
    """Shorten a file by what the last write left of a broken record; pipes cannot be cut."""
    cdef long end = lseek(fd, 0, SEEK_CUR)
    if end >= 0:
        ftruncate(fd, end - octets)
