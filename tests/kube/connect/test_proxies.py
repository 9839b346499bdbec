"""Which proxy a server is reached through: Go's rules, as a table."""

import pytest

from kedge.kube.connect import proxies

PROXY = "http://p:3128"


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://api", {}, None),
        ("https://api", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api", {"https_proxy": PROXY}, PROXY),
        ("https://api", {"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, PROXY),
        ("https://api", {"HTTPS_PROXY": "", "https_proxy": PROXY}, PROXY),
        ("https://api", {"HTTPS_PROXY": "p:3128"}, PROXY),
        ("https://api", {"HTTP_PROXY": PROXY}, None),
        ("http://api", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://api", {"HTTPS_PROXY": PROXY}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.9.9.9:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://10.0.0.1", {"HTTPS_PROXY": PROXY}, PROXY),
    ],
)
def test_the_environment_names_a_proxy(server: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxies.from_environment(server, environ) == proxy


@pytest.mark.parametrize(
    ("no_proxy", "server", "exempt"),
    [
        ("*", "https://api.example.com", True),
        ("example.com", "https://example.com", True),
        ("example.com", "https://api.example.com", True),
        ("example.com", "https://notexample.com", False),
        (".example.com", "https://api.example.com", True),
        (".example.com", "https://example.com", False),
        ("*.example.com", "https://api.example.com", True),
        ("*.example.com", "https://example.com", False),
        ("EXAMPLE.com", "https://api.Example.COM", True),
        ("other, example.com ,", "https://example.com", True),
        ("example.com:6443", "https://example.com:6443", True),
        ("example.com:6443", "https://example.com", False),
        ("example.com:443", "https://example.com", True),
        ("10.0.0.1", "https://10.0.0.1:6443", True),
        ("10.0.0.1:6443", "https://10.0.0.1:6443", True),
        ("10.0.0.1:6443", "https://10.0.0.1:443", False),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.0.0.0/8", "https://api.example.com", False),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("fd00::1", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("[fd00::1]:443", "https://[fd00::1]:6443", False),
        ("not/a/network", "https://api.example.com", False),
        (":6443", "https://api.example.com:6443", False),
        ("", "https://api.example.com", False),
    ],
)
@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_some_servers_are_exempt(name: str, no_proxy: str, server: str, exempt: bool) -> None:
    found = proxies.from_environment(server, {"HTTPS_PROXY": PROXY, name: no_proxy})
    assert found == (None if exempt else PROXY)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("socks5://p:1080", "is a SOCKS proxy"),
        ("socks5h://p:1080", "is a SOCKS proxy"),
        ("ftp://p", "is no URL of a proxy"),
        ("http://", "is no URL of a proxy"),
        ("http://p:port", "it is not a URL"),
    ],
)
def test_what_is_no_http_proxy_is_refused(given: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        proxies.from_environment("https://api", {"HTTPS_PROXY": given})


def test_a_proxys_password_is_used_and_not_shown() -> None:
    assert proxies.checked("http://me:hunter2@p:3128") == "http://me:hunter2@p:3128"
    with pytest.raises(ValueError, match=r"socks5://p:1080") as caught:
        proxies.checked("socks5://me:hunter2@p:1080")
    assert "hunter2" not in str(caught.value)
