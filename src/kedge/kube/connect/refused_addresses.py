"""Refused addresses: where no call of a user's making may lead.

Whoever may write a rollout names URLs that an operator calls, and sees how answers begin. Link-local addresses are
those of the machine that the operator runs on: the metadata services of clouds hand out its credentials there.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

METADATA: Final = frozenset(map(ip_address, ("100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254")))
"""Metadata services that are not at a link-local address."""


def refused(host: str) -> str:
    """Why nobody is called at this address; empty if it may be, or is no address but a name."""
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return ""
    if _is_refused(address):
        return f"{address} is a link-local address or one of a metadata service: nobody is called there"
    return ""


def _is_refused(address: IPv4Address | IPv6Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address.is_link_local or address in METADATA or (mapped is not None and _is_refused(mapped))
