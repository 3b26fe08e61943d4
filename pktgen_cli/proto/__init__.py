"""Typed headers: one file a protocol, found by name.

Each module of this package will describe one header as a table of fields. None is
written yet; the compiler refuses their calls by name instead of guessing.
"""

from __future__ import annotations

PLANNED = frozenset(
    (
        "eth", "pause", "pfc", "vlan", "mpls", "arp", "ip4", "ipv4", "ip6", "ipv6", "icmp4",
        "icmpv4", "icmp6", "icmpv6", "udp", "tcp", "dns",
    )
)
"""trafgen's header names, so that messages can tell a header from a typing mistake."""
