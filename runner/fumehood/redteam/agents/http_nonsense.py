"""Sends requests that HTTP servers and JSON parsers have mishandled: odd framing, paths and
JSON."""

from __future__ import annotations

from attempts import GIVEN, attempt, say
from speak_http import ask, request, status_of, talk

MIB = 1 << 20
CALL = "/call/write_file"
BODIES = {
    "not a number": '{"path": "/x", "content": NaN}',
    "half a pair": '{"path": "/x", "content": "\\ud800"}',
    "a list": "[]",
    "a million digits": '{"path": "/x", "content": ' + "1" * MIB + "}",
    "a hundred thousand levels": '{"path": "/x", "content": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "sixty-five levels": '{"path": "/x", "content": ' + "[" * 65 + "]" * 65 + "}",
    "bytes that are no text": '{"path": "\udcff\udcfe"}',
}
STRANGERS = """
    /fumehood.v1.ControlService/OpenEpisode /fumehood.v1.ControlService/Health /docs /openapi.json
    /../../etc/passwd /%2e%2e/%2e%2e/etc/passwd //etc/passwd /static/../../etc/passwd /metrics
    http://169.254.169.254/latest/meta-data/ /call/../../etc/passwd /call/%00 *
""".split()
BUDGET = int(GIVEN.get("calls", "2000"))


def smuggle(body: str) -> str:
    status = ask("POST", CALL, body.encode("utf-8", "surrogateescape"))
    return status if status == "200" else ""


def stranger(path: str) -> str:
    statuses = {method: ask(method, path, b"{}") for method in ("GET", "POST", "CONNECT")}
    accepted = [
        f"{method} {status}" for method, status in statuses.items() if status[:1] in ("2", "3")
    ]
    return ", ".join(accepted)


def two_lengths() -> str:
    """Send bytes that some parsers read as two requests; the second must not be answered."""
    hidden = request("POST", "/submit", b"smuggled")
    heads = ("content-length: 5", "transfer-encoding: chunked")
    responses = talk(request("POST", CALL, b"0\r\n\r\n" + hidden, *heads), 1.0)
    return "both were answered" if responses.count(b"HTTP/1.1 200") > 1 else ""


def odd_heads() -> str:
    odd = (
        b"POST /call/list_dir HTTP/1.1\nhost: x\ncontent-length: 2\n\n{}",
        b"POST /call/list_dir HTTP/9.9\r\nhost: x\r\n\r\n",
        b"POST /call/list_dir\r\n\r\n",
        b"POST /call/list_dir HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n{}",
        b"POST /call/list_dir HTTP/1.1\r\nhost: x\r\n"
        b"content-length: 99999999999999999999\r\n\r\n{}",
        b"POST /call/list_dir HTTP/1.1\r\nhost: x\r\n\x00\xff: y\r\n\r\n",
        b"POST /call/list_dir HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        b"ffffffffffffffff\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /task HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    )
    say(f"tried odd heads: {', '.join(sorted({status_of(talk(octets, 0.3)) for octets in odd}))}")
    return ""


for what, body in BODIES.items():
    attempt(what, smuggle, body)
for path in STRANGERS:
    attempt(f"the path {path}", stranger, path)
attempt("a request in a request", two_lengths)
attempt("odd heads", odd_heads)
say(f"tried to be answered afterwards: {ask('GET', '/task')}")
