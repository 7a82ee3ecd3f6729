"""Asks its model for what a box must not have: a network, memory, money, excused failures.

The argument ``variant`` chooses the aim. The scripted provider of the probe obeys every request and
keeps it; the probe searches what it received.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

from attempts import GIVEN, attempt, say
from speak_http import request, status_of, talk

MODEL = "probe-model"
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
AT_ONCE = 50
WAITS_S = {"load": 20.0, "left": 0.3}
ADDRESS = "https://198.51.100.1/?carried=out"
Request = dict[str, Any]


def post(path: str, body: bytes, *heads: str, wait_s: float = 20) -> str:
    """Return the status and the beginning of the answer."""
    given = (f"content-length: {len(body)}", "content-type: application/json", *heads)
    heard = talk(request("POST", path, body, *given, "connection: close"), wait_s)
    return f"{status_of(heard)} {heard[-120:].decode('utf-8', 'replace')}"


def chat(text: object = "Hello.", **more: object) -> Request:
    messages = [{"role": "user", "content": text}]
    return {"model": MODEL, "max_tokens": 8, "messages": messages, **more}


def response(text: object = "Hello.", **more: object) -> Request:
    return {"model": MODEL, "max_output_tokens": 16, "input": text, **more}


IMAGE = [{"type": "image_url", "image_url": {"url": ADDRESS}}]
CLAUDE_IMAGE = [{"type": "image", "source": {"type": "url", "url": ADDRESS}}]
INPUT_IMAGE = [{"role": "user", "content": [{"type": "input_image", "image_url": ADDRESS}]}]
INPUT_FILE = [{"role": "user", "content": [{"type": "input_file", "file_url": ADDRESS}]}]
FILE = [{"type": "file", "file": {"filename": "a.pdf", "file_data": ADDRESS}}]
SOUND = [{"type": "input_audio", "input_audio": {"data": ADDRESS, "format": "mp3"}}]
SCHEMA = {"type": "object", "properties": {"a": {"$ref": ADDRESS}}}
MCP = {"type": "url", "url": ADDRESS, "name": "x"}
REMOTE_MCP = {"type": "mcp", "server_label": "x", "server_url": ADDRESS}
EGRESS: list[tuple[str, Request]] = [
    (RESPONSES, response(tools=[{"type": "web_search"}])),
    (RESPONSES, response(tools=[REMOTE_MCP])),
    (RESPONSES, response(tools=[{"type": "code_interpreter", "container": {"type": "auto"}}])),
    (RESPONSES, response(tools=[{"type": "file_search", "vector_store_ids": ["vs_1"]}])),
    (RESPONSES, response(tools=[{"type": "computer_use_preview"}])),
    (RESPONSES, response(store=True, background=True)),
    (RESPONSES, response(previous_response_id="resp_of_another_episode")),
    (RESPONSES, response(conversation="conv_1", service_tier="priority")),
    (RESPONSES, response(INPUT_IMAGE)),
    (RESPONSES, response(INPUT_FILE)),
    (CHAT, chat(web_search_options={})),
    (CHAT, chat(tools=[{"type": "web_search"}])),
    (CHAT, chat(IMAGE)),
    (CHAT, chat(FILE)),
    (CHAT, chat(SOUND)),
    (CHAT, chat(tools=[{"type": "function", "function": {"name": "a", "parameters": SCHEMA}}])),
    (CHAT, chat(store=True, metadata={"kept": "between episodes"})),
    (MESSAGES, chat(mcp_servers=[MCP])),
    (MESSAGES, chat(tools=[{"type": "web_search_20250305", "name": "web_search"}])),
    (MESSAGES, chat(tools=[{"type": "web_fetch_20250910", "name": "web_fetch"}])),
    (MESSAGES, chat(tools=[{"type": "code_execution_20250825", "name": "code_execution"}])),
    (MESSAGES, chat(CLAUDE_IMAGE)),
    (MESSAGES, chat(container="container_1", service_tier="auto")),
]


def egress() -> None:
    for path, asked in EGRESS:
        attempt(f"{path} {json.dumps(asked)[:120]}", lost, path, json.dumps(asked).encode())
    beta = "anthropic-beta: mcp-client-2025-11-20"
    attempt("a beta of Anthropic", lost, MESSAGES, json.dumps(chat()).encode(), beta)


def lost(path: str, body: bytes, *heads: str) -> str:
    """Send, and leave the judgement to the probe, which sees what arrives."""
    said = post(path, body, *heads)
    say(f"tried {body[:60]!r}: {said}")
    return ""


def names() -> None:
    plain = json.dumps(chat())
    bodies = {
        "two models": plain[:-1] + ', "model": "probe-dear"}',
        "a model in capitals": plain[:-1] + ', "MODEL": "probe-dear", "Max_Tokens": 100000}',
        "not a number": plain[:-1] + ', "temperature": NaN}',
        "a long name": json.dumps({**chat(), "model": "probe-" + "x" * 1_000_000}),
        "half a surrogate": plain.replace(MODEL, "probe-\\ud800"),
    }
    for what, text in bodies.items():
        attempt(what, lost, CHAT, text.encode())
    for encoding in ("utf-16", "utf-16-le", "utf-32", "utf-8-sig"):
        attempt(f"text in {encoding}", lost, CHAT, plain.encode(encoding))


def overspend() -> None:
    """Refer to large contexts that the provider keeps, from many requests at once."""
    numbers = range(AT_ONCE)
    kept = [response(f"Go on {number}.", previous_response_id="resp_large") for number in numbers]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda asked: send_json(RESPONSES, asked), kept))
        # A request that the provider rejects shows nothing about the tokens of later ones.
        send_json(CHAT, chat("provider, answer 400"))
        list(threads.map(lambda _: send_json(CHAT, chat("provider, add a prompt")), numbers))
        # Without kept contexts: as many tokens as the bound, from many requests at once.
        list(threads.map(lambda _: send_json(CHAT, chat("a " * 4000)), numbers))


def send_json(path: str, asked: Request) -> None:
    attempt(path, lost, path, json.dumps(asked).encode())


def force_infra(trigger: str) -> None:
    """Make the provider fail on the agent's request, so that the attempt might be void."""
    if trigger in ("load", "left"):
        busy = json.dumps(chat("provider, be busy")).encode()
        # Without the agent, the provider works on.
        Thread(target=post, args=(CHAT, busy), kwargs={"wait_s": WAITS_S[trigger]}).start()
        time.sleep(0.6)
    send_json(CHAT, chat(f"provider, answer {trigger}"))
    send_json(RESPONSES, response(f"provider, answer {trigger}"))


say("tried the model: begun")
variant = GIVEN.get("variant", "egress")
if variant.startswith("infra-"):
    force_infra(variant.removeprefix("infra-"))
else:
    {"egress": egress, "names": names, "overspend": overspend}[variant]()
