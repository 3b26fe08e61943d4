"""The command line: options in, one call, exit code out. One file a subcommand, found by name."""
