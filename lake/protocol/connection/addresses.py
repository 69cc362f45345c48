"""Addresses that servers listen at."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens at an address or name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
