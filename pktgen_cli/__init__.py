"""pktgen: send, receive and prove network packets on Linux."""

__version__ = "0.1.0"
