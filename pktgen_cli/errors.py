"""What can go wrong, and the exit code that says so.

The codes are those of semantics section 6: 0 done, 1 failed while running, 2 usage or
description, 3 a check failed, 4 this machine cannot do it, 130 and 143 interrupted
before the end condition.
"""

from __future__ import annotations

import signal

from pktgen_cli.diagnostics import Diagnostics

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_CHECK = 3
EXIT_CANNOT = 4
EXIT_SIGINT = 130
EXIT_SIGTERM = 143


class PktgenError(Exception):
    """Base of everything that ends a command with one message and no traceback."""

    exit_code = EXIT_FAILED

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.message = message
        self.hints = hints

    def render(self) -> str:
        return f"pktgen: error: {self.message}\n" + "".join(f"  hint: {hint}\n" for hint in self.hints)


class UsageError(PktgenError):
    """An option or argument that makes no sense."""

    exit_code = EXIT_USAGE


class ConfigError(PktgenError):
    """A description that was refused; carries every diagnostic of the run."""

    exit_code = EXIT_USAGE

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics.render())
        self.diagnostics = diagnostics

    def render(self) -> str:
        return self.message


class ProgramError(PktgenError):
    """A Program that no executor could run; a mistake of the code that built it."""

    exit_code = EXIT_USAGE


class DeviceError(PktgenError):
    """The named link does not exist or cannot take these frames."""

    exit_code = EXIT_USAGE


class CannotError(PktgenError):
    """Privilege, kernel or driver are missing; the message names the mend."""

    exit_code = EXIT_CANNOT


class Interrupted(PktgenError):
    """A signal came before the run had started."""

    def __init__(self, number: int) -> None:
        super().__init__("interrupted before the start: nothing was sent")
        self.exit_code = EXIT_SIGINT if number == signal.SIGINT else EXIT_SIGTERM


class WorkerError(PktgenError):
    """A worker ended by itself."""

    exit_code = EXIT_FAILED
