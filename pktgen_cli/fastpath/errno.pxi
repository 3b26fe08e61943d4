# Negative errno to OSError, at the Python boundary only.


cdef object os_error(int code, str operation, str where):
    """An OSError that names the operation and the device or file."""
    import os
    return OSError(code, f"{operation}: {os.strerror(code)}", where)
