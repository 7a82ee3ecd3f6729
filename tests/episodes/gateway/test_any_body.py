"""No request of an agent causes an error of the gateway itself."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fumehood.testing.scripted_replies import ScriptedReply
from tests.parts.models import CHAT, MESSAGES, RESPONSES, Asker, Script

NAMES = (
    "model messages input tools type content role store stream max_tokens n metadata text function "
    "url image_url source tool_choice Model MODEL"
)
names = st.sampled_from(NAMES.split(" ")) | st.text(max_size=5)
words = st.sampled_from(["m1", "user", "text", "function", "web_search", "url", "", "\ud800"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=15,
)
encodings = st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-32-be", "utf-8-sig"])


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Return a request, possibly in another encoding, cut short, or not JSON at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=50))
    request: dict[str, Any] = {
        "model": "m1",
        "messages": [],
        **draw(st.dictionaries(names, values)),
    }
    text = json.dumps(request, ensure_ascii=draw(st.booleans()))
    body = text.encode(draw(encodings), "surrogatepass")
    return body[: draw(st.integers(0, len(body)))] if draw(st.integers(0, 4)) == 0 else body


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from([CHAT, RESPONSES, MESSAGES]), bodies())
@example(CHAT, b'{"model": "\\u001f", "messages": []}')
def test_every_body_gets_a_documented_answer(
    seat: Asker, script: Script, path: str, body: bytes
) -> None:
    script.says(ScriptedReply(text="ok"))
    status, said = seat.http.send(path, body)
    answer = json.loads(said)
    if status != 200:
        error = answer["error"]
        assert (status, error["code"]) in {
            (400, "malformed"),
            (403, "capability_not_granted"),
            (404, "unknown_model"),
        }
        assert error["message"].isprintable()
