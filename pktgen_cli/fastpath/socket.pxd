from libc.stdint cimport uint32_t

cdef extern from "<sys/socket.h>" nogil:
    ctypedef uint32_t socklen_t
    const int AF_PACKET
    const int SOCK_RAW
    const int SOCK_CLOEXEC
    const int SOL_SOCKET
    const int SOL_PACKET
    const int SO_SNDBUF
    const int MSG_DONTWAIT

    struct sockaddr:
        pass

    struct iovec:
        void* iov_base
        size_t iov_len

    struct msghdr:
        iovec* msg_iov
        size_t msg_iovlen

    struct mmsghdr:
        msghdr msg_hdr
        unsigned int msg_len

    int socket(int domain, int type, int protocol)
    int bind(int fd, sockaddr* address, socklen_t length)
    int setsockopt(int fd, int level, int name, const void* value, socklen_t length)
    int sendmmsg(int fd, mmsghdr* messages, unsigned int count, int flags)
    ssize_t send(int fd, const void* data, size_t length, int flags)

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    const short POLLOUT
    int poll(pollfd* fds, unsigned long count, int timeout)

cdef extern from "<sys/ioctl.h>" nogil:
    int ioctl(int fd, unsigned long request, void* argument)

cdef extern from "<sys/mman.h>" nogil:
    const int PROT_READ
    const int PROT_WRITE
    const int MAP_SHARED
    const int MAP_POPULATE
    void* MAP_FAILED
    void* mmap(void* address, size_t length, int protection, int flags, int fd, long offset)
    int munmap(void* address, size_t length)

cdef extern from "<unistd.h>" nogil:
    const int SEEK_CUR
    int close_fd "close" (int fd)
    int getppid()
    long lseek(int fd, long offset, int whence)
    ssize_t write_fd "write" (int fd, const void* data, size_t length)
    int ftruncate(int fd, long length)

cdef extern from "<fcntl.h>" nogil:
    const int O_WRONLY
    const int O_CREAT
    const int O_TRUNC
    const int O_CLOEXEC
    int open_file "open" (const char* path, int flags, int mode)

cdef extern from "<signal.h>" nogil:
    const int SIGKILL
    const int SIGTERM

cdef extern from "<sys/prctl.h>" nogil:
    const int PR_SET_PDEATHSIG
    const int PR_SET_TIMERSLACK
    int prctl(int option, unsigned long value)
