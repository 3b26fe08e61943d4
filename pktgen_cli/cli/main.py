"""`pktgen`: finds its subcommands by file name and turns errors into messages and exit codes.

Each module of this package whose name does not begin with an underscore is a
subcommand with a click command named `command`. They import what they need inside
their callback, so that --help stays fast.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import click

from pktgen_cli import __version__
from pktgen_cli.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGINT, PktgenError

HELP_NAMES = {"help_option_names": ["-h", "--help"]}


class Commands(click.Group):
    """A group whose commands are the files beside this one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (path.stem for path in Path(__file__).parent.glob("*.py"))
        return sorted(name for name in names if not name.startswith("_") and name != "main")

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"pktgen_cli.cli.{name}").command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Commands, context_settings=HELP_NAMES, no_args_is_help=True)
@click.version_option(__version__, "-v", "--version", prog_name="pktgen")
def group() -> None:
    """Send packets described in trafgen's language, and count what left.

    \b
    pktgen demo
    pktgen show '{ fill(0xff,6), drnd(6), c16(0x88b5), fill(0,46) }'
    pktgen send -o veth0 -n 1000 -b 10kpps '{ fill(0xff,6), drnd(6), c16(0x88b5), fill(0,46) }'
    pktgen send -o out.pcap -n 10 -i configs/udp.cfg

    Exit codes: 0 done, 1 failed while running, 2 usage or description, 3 a check failed,
    4 this machine cannot do it, 130 and 143 interrupted before the end.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; always leaves by SystemExit."""
    if sys.stderr is None:  # closed by the caller
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    try:
        result = group.main(arguments, prog_name="pktgen", standalone_mode=False)
        code = result if isinstance(result, int) else EXIT_DONE
        if sys.stdout is not None:
            sys.stdout.flush()
    except PktgenError as error:
        sys.stderr.write(error.render())
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = EXIT_SIGINT
    except OSError as error:  # the result cannot be written
        reason = "its reader is gone" if isinstance(error, BrokenPipeError) else error.strerror
        where = error.filename or "standard output"
        click.echo(f"pktgen: error: {where}: {reason}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = EXIT_FAILED
    sys.exit(code)
