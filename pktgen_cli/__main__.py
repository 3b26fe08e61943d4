"""``python -m pktgen_cli`` is ``pktgen``."""

from pktgen_cli.cli.main import main

if __name__ == "__main__":
    main()
