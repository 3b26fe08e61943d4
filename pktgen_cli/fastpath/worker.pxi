# A worker process: dies with its parent, stops on SIGTERM.

cdef int terminated = 0     # SIGTERM reached this worker


cdef void on_sigterm(int number) noexcept nogil:
    global terminated
    terminated = 1


def prepare_worker(int parent):
    """Die with the parent, end `transmit` on SIGTERM, let sleeps end on time; OSError when the parent is gone."""
    catch_signal(SIGTERM, on_sigterm)
    prctl(PR_SET_PDEATHSIG, SIGKILL)
    prctl(PR_SET_TIMERSLACK, 1)
    if getppid() != parent:
        raise os_error(ESRCH, "parent", None)
