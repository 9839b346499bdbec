"""Proxies: through which HTTP proxy a server is reached, if any.

Promises the reading of Go's `ProxyFromEnvironment`, as client-go and kubectl use it: `HTTPS_PROXY` and `HTTP_PROXY` by
the server's scheme, upper case before lower, `NO_PROXY` with names, `.domains`, addresses, networks and ports; never
a proxy from the environment for loopback. Refuses SOCKS, which the HTTP client below cannot speak.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network

from yarl import URL

from kedge.kube.connect.connection import shown


def from_environment(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for this server. Raises ValueError for one that cannot be used."""
    url = URL(server)
    name = "HTTPS_PROXY" if url.scheme == "https" else "HTTP_PROXY"
    given = environ.get(name) or environ.get(name.lower())
    host = (url.host or "").lower().rstrip(".")
    if not given or _loopback(host):
        return None
    exempt = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if any(_covers(entry.strip().lower(), host, url.port) for entry in exempt.split(",")):
        return None
    try:
        return checked(given if "://" in given else f"http://{given}")
    except ValueError as error:
        raise ValueError(f"${name}: {error}") from None


def checked(given: str) -> str:
    """A proxy's URL, if it is one that can be used. Raises ValueError, which shows no password."""
    try:
        url = URL(given)
    except ValueError:
        raise ValueError("it is not a URL: write http://host:port") from None
    if url.scheme.startswith("socks"):
        raise ValueError(f"{shown(given)} is a SOCKS proxy: use an HTTP proxy (http://host:port)")
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError(f"{shown(given)} is no URL of a proxy: write http://host:port")
    return str(url)


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _covers(entry: str, host: str, port: int | None) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    if "/" in entry:
        return _in_network(entry, host)
    name, its_port = _split(entry)
    if its_port not in {"", str(port)} or not name:
        return False
    return _is_address(name, host) or _is_domain(name, host)


def _split(entry: str) -> tuple[str, str]:
    """Host and port of `host`, `host:port`, `[v6]:port` or a bare v6 address."""
    if entry.startswith("["):
        name, _, port = entry[1:].partition("]")
        return name, port.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _in_network(entry: str, host: str) -> bool:
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        return False


def _is_address(name: str, host: str) -> bool:
    try:
        return ip_address(name) == ip_address(host)
    except ValueError:
        return False


def _is_domain(name: str, host: str) -> bool:
    name = name.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")
