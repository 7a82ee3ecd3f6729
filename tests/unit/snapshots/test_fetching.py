"""A live fetch contacts only hosts that the policy allows."""

from __future__ import annotations

import pytest

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.errors import FetchFailure
from fumehood_snapshots.web.addresses import is_public
from fumehood_snapshots.web.fetcher import LiveFetcher
from fumehood_snapshots.web.policy import FetchPolicy
from tests.unit.snapshots.sites import Site, article, failure_of, page, redirect

OWLS = article("owls")


def test_a_page_has_its_metadata(site: Site) -> None:
    capture = LiveFetcher(site.policy(), now=lambda: "2026-01-31T12:00:00Z").fetch(
        f"{site.url}/%6Fwls#top"
    )
    assert capture == Capture(
        uri=f"{site.url}/owls",
        fetched_at="2026-01-31T12:00:00Z",
        body=OWLS.encode(),
        content_type="text/html; charset=utf-8",
        status=200,
        headers=capture.headers,
    )
    assert "user-agent: fumehood-snapshots\r\n" in site.requests[-1].lower()


def test_an_error_page_is_a_page(site: Site) -> None:
    assert LiveFetcher(site.policy()).fetch(f"{site.url}/absent").status == 404


@pytest.mark.parametrize(
    ("url", "failure"),
    [
        ("http://other.example/", FetchFailure.HOST_NOT_ALLOWED),
        ("http://good.example.evil.example/", FetchFailure.HOST_NOT_ALLOWED),
        ("http://good.example:8080/", FetchFailure.HOST_NOT_ALLOWED),
        ("http://evilgood.example/", FetchFailure.HOST_NOT_ALLOWED),
        ("http://good.example@evil.example/", FetchFailure.BAD_URL),
        ("http://user:word@good.example/", FetchFailure.BAD_URL),
        ("ftp://good.example/", FetchFailure.BAD_URL),
        ("file:///etc/passwd", FetchFailure.BAD_URL),
        ("javascript:alert(1)", FetchFailure.BAD_URL),
        ("http://[::1", FetchFailure.BAD_URL),
        ("http://good.example:99999/", FetchFailure.BAD_URL),
        ("http://", FetchFailure.HOST_NOT_ALLOWED),
        ("", FetchFailure.BAD_URL),
        ("http://good.example/" + "x" * 5000, FetchFailure.BAD_URL),
        ("http://\ud800.example/", FetchFailure.BAD_URL),
    ],
)
def test_a_disallowed_url_is_never_resolved(url: str, failure: FetchFailure) -> None:
    def never(name: str) -> list[str]:
        raise AssertionError(f"looked {name} up")

    fetcher = LiveFetcher(FetchPolicy(hosts=("good.example", "*.sub.example")), resolve=never)
    assert failure_of(fetcher, url) is failure


@pytest.mark.parametrize(
    ("pattern", "host", "allowed"),
    [
        ("good.example", "good.example", True),
        ("Good.Example", "GOOD.example.", True),
        ("*.good.example", "a.b.good.example", True),
        ("*.good.example", "good.example", False),
        ("*.good.example", "notgood.example", False),
        ("good.example:8080", "good.example:8080", True),
        ("good.example:8080", "good.example", False),
        ("good.example", "good.example:80", True),
        ("*", "anything.example", True),
        ("*", "anything.example:22", False),
    ],
)
def test_host_patterns_match_as_documented(pattern: str, host: str, allowed: bool) -> None:
    fetcher = LiveFetcher(FetchPolicy(hosts=(pattern,)), resolve=lambda name: [])
    expected = FetchFailure.NAME_NOT_RESOLVED if allowed else FetchFailure.HOST_NOT_ALLOWED
    assert failure_of(fetcher, f"http://{host}/") is expected


PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "100.100.100.200",
    "fd00:ec2::254",
    "::ffff:168.63.129.16",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "::",
    "::1",
    "fe80::1",
    "fd00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::1",
    "2001:0:4136:e378::1",
    "2001:db8::1",
    "fec0::1",
    "feff::1",
    "192.88.99.1",
    "::ffff:192.88.99.1",
    "::7f00:1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_host_with_a_private_address_is_refused(address: str) -> None:
    for addresses in ([address], ["93.184.216.34", address]):
        fetcher = LiveFetcher(
            FetchPolicy(hosts=("*",)), resolve={"innocent.example": addresses}.__getitem__
        )
        assert failure_of(fetcher, "http://innocent.example/") is FetchFailure.ADDRESS_NOT_PUBLIC


def test_public_addresses_are_public() -> None:
    import ipaddress

    for address in ("93.184.216.34", "1.1.1.1", "2606:2800:220:1::1"):
        assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "[::1]", "127.1"]
)
def test_all_spellings_of_loopback_are_refused(site: Site, host: str) -> None:
    fetcher = LiveFetcher(FetchPolicy(hosts=(f"{host}:{site.port}",), seconds_max=5))
    failure = failure_of(fetcher, f"http://{host}:{site.port}/owls")
    assert failure in {FetchFailure.ADDRESS_NOT_PUBLIC, FetchFailure.NAME_NOT_RESOLVED}
    assert site.requests == []


def test_only_a_listed_host_may_be_private(site: Site) -> None:
    settings = {
        "hosts": (f"a.example:{site.port}", f"b.example:{site.port}"),
        "private_hosts": (f"a.example:{site.port}",),
    }
    fetcher = LiveFetcher(FetchPolicy.model_validate(settings), resolve=lambda name: ["127.0.0.1"])
    assert fetcher.fetch(f"http://a.example:{site.port}/owls").status == 200
    assert (
        failure_of(fetcher, f"http://b.example:{site.port}/owls") is FetchFailure.ADDRESS_NOT_PUBLIC
    )


def test_an_address_is_resolved_once_and_pinned(site: Site) -> None:
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])
    settings = {"hosts": (f"a.example:{site.port}",), "private_hosts": (f"a.example:{site.port}",)}
    fetcher = LiveFetcher(FetchPolicy.model_validate(settings), resolve=lambda name: next(answers))
    for _ in range(3):
        assert fetcher.fetch(f"http://a.example:{site.port}/owls").body == OWLS.encode()


def test_the_next_address_is_tried_when_one_refuses(site: Site) -> None:
    settings = {"hosts": (f"a.example:{site.port}",), "private_hosts": (f"a.example:{site.port}",)}
    fetcher = LiveFetcher(
        FetchPolicy.model_validate(settings), resolve=lambda name: ["127.0.0.2", "127.0.0.1"]
    )
    assert fetcher.fetch(f"http://a.example:{site.port}/owls").status == 200


def test_redirects_are_followed_to_the_page(site: Site) -> None:
    site.routes |= {"/a": redirect("/b"), "/b": redirect(f"{site.url}/owls")}
    seen: list[str] = []
    fetcher = LiveFetcher(
        site.policy(obey_robots=False), observe=lambda capture: seen.append(capture.uri)
    )
    assert fetcher.fetch(f"{site.url}/a").uri == f"{site.url}/owls"
    assert seen == [f"{site.url}/{path}" for path in ("a", "b", "owls")]


@pytest.mark.parametrize(
    ("target", "failure"),
    [
        ("http://evil.example/", FetchFailure.HOST_NOT_ALLOWED),
        ("http://127.0.0.1:1/", FetchFailure.HOST_NOT_ALLOWED),
        ("http://169.254.169.254/latest/meta-data", FetchFailure.HOST_NOT_ALLOWED),
        ("http://inside.example/", FetchFailure.ADDRESS_NOT_PUBLIC),
        ("file:///etc/passwd", FetchFailure.BAD_URL),
        ("//user@127.0.0.1/", FetchFailure.BAD_URL),
        ("/round", FetchFailure.TOO_MANY_REDIRECTS),
        ("http://[", FetchFailure.BAD_URL),
    ],
)
def test_a_redirect_is_checked_like_a_request(
    site: Site, target: str, failure: FetchFailure
) -> None:
    site.routes["/round"] = redirect(target)
    hosts = (f"127.0.0.1:{site.port}", "inside.example")
    fetcher = LiveFetcher(site.policy(hosts=hosts), resolve=lambda name: ["127.0.0.1"])
    assert failure_of(fetcher, f"{site.url}/round") is failure


@pytest.mark.parametrize(
    ("robots", "allowed"),
    [
        (page("User-agent: *\nDisallow: /private", Content_Type="text/plain"), True),
        (page("User-agent: *\nDisallow: /owls", Content_Type="text/plain"), False),
        (page("User-agent: fumehood-snapshots\nDisallow: /\n\nUser-agent: *\nAllow: /"), False),
        (page("gone", "404 Not Found"), True),
        (page("broken", "503 Service Unavailable"), False),
        (redirect("/robots.txt"), False),
        (b"nonsense", False),
    ],
    ids=["other path", "this path", "this robot", "no rules", "out of order", "loop", "broken"],
)
def test_robots_txt_is_obeyed(site: Site, robots: bytes, allowed: bool) -> None:
    site.routes["/robots.txt"] = robots
    fetcher = LiveFetcher(site.policy())
    if allowed:
        assert fetcher.fetch(f"{site.url}/owls").status == 200
        fetcher.fetch(f"{site.url}/owls")
        assert site.paths.count("/robots.txt") == 1
    else:
        assert failure_of(fetcher, f"{site.url}/owls") is FetchFailure.ROBOTS_DISALLOWED
        assert "/owls" not in site.paths
    assert LiveFetcher(site.policy(obey_robots=False)).fetch(f"{site.url}/owls").status == 200
