"""Which fields of a request need a grant, per dialect."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.json_values import Json
from fumehood.gateway.allowed_fields import ALLOWED_FIELDS, needs_of
from fumehood.gateway.capabilities import NEEDS_MAX, Capability, is_grant

CHAT, RESPONSES, MESSAGES, GEMINI, EMBEDDINGS = ALLOWED_FIELDS
URL = "https://example.org/?leak=1"
DATA = "data:image/png;base64,AAAA"


def found(path: str, headers: dict[str, str] | None = None, **request: Json) -> dict[str, str]:
    model = str(request.get("model", "m"))
    # The path of Gemini contains the model.
    body = request if path == GEMINI else {"model": model, **request}
    return needs_of(path, body, headers or {}, model=model, named=False).fields


def said(*parts: Json) -> dict[str, Any]:
    """Return one message of the user with these content parts."""
    return {"messages": [{"role": "user", "content": list(parts)}]}


def generated(*parts: Json) -> dict[str, Any]:
    """Return one content of the user with these parts."""
    return {"contents": [{"role": "user", "parts": list(parts)}]}


def tool(kind: str, /, **more: Json) -> dict[str, Any]:
    return {"tools": [{"type": kind, **more}]}


def item(kind: str | None, /, **more: Json) -> dict[str, Any]:
    return {"input": [{**({"type": kind} if kind else {}), **more}]}


@pytest.mark.parametrize(
    ("path", "request_fields", "need"),
    [
        (CHAT, {"web_search_options": {}}, "web_search"),
        (CHAT, tool("web_search"), "web_search"),
        (CHAT, tool("mcp", server_url=URL), "remote_mcp"),
        (CHAT, said({"type": "image_url", "image_url": {"url": URL}}), "image_url"),
        (CHAT, said({"type": "image_url", "image_url": {"url": "file:///etc"}}), "image_url"),
        (CHAT, said({"type": "file", "file": {"file_id": "f1"}}), "stored_files"),
        (CHAT, said({"type": "file", "file": {"filename": "a", "file_data": URL}}), "file_url"),
        (CHAT, said({"type": "input_audio", "input_audio": {"data": URL}}), "file_url"),
        (CHAT, tool("function", function={"parameters": {"a": [{"$ref": URL}]}}), "file_url"),
        (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"$schema": URL}}},
         "file_url"),
        (CHAT, {"model": "m:online:free"}, "web_search"),
        (CHAT, {"store": True}, "stored_responses"),
        (CHAT, {"store": 1}, "stored_responses"),
        (CHAT, {"service_tier": "priority"}, "service_tier"),
        (CHAT, {"service_tier": "auto"}, "service_tier"),
        (CHAT, {"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, "stored_responses"),
        (CHAT, {"plugins": [{"id": "web"}]}, "field:plugins"),
        (CHAT, {"models": ["other"]}, "field:models"),
        (CHAT, {"Model": "dear"}, "field:Model"),
        (CHAT, {"modalities": ["text", "audio"]}, "media_output"),
        (CHAT, {"audio": {"voice": "a", "format": "wav"}}, "media_output"),
        (CHAT, {"messages": [{"role": "user", "cache_control": {"ttl": "1h"}}]}, "service_tier"),
        (GEMINI, {"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}, "media_output"),
        (CHAT, {"model": "relace/relace-search"}, "web_search"),
        (CHAT, {"model": "some:online"}, "web_search"),
        (CHAT, {"model": "gpt-4o-search-preview"}, "web_search"),
        (CHAT, {"temperature": {"web": True}}, "field:temperature"),
        (CHAT, said({"type": "video_url", "video_url": URL}), "field:messages[].content[].type="
         "video_url"),
        (CHAT, tool("function", function={"name": "a", "server": URL}), "field:tools[].function"
         ".server"),
        (RESPONSES, tool("web_search"), "web_search"),
        (RESPONSES, tool("web_search_preview_2025_03_11"), "web_search"),
        (RESPONSES, tool("mcp", server_url=URL, server_label="a"), "remote_mcp"),
        (RESPONSES, tool("code_interpreter", container={"type": "auto"}), "code_interpreter"),
        (RESPONSES, tool("shell"), "code_interpreter"),
        (RESPONSES, tool("file_search", vector_store_ids=["v"]), "file_search"),
        (RESPONSES, tool("computer_use_preview"), "computer_use"),
        (RESPONSES, tool("image_generation"), "image_generation"),
        (RESPONSES, tool("function", allowed_callers=["programmatic"]), "code_interpreter"),
        (RESPONSES, tool("of_tomorrow"), "field:tools[].type=of_tomorrow"),
        (RESPONSES, {"store": True}, "stored_responses"),
        (RESPONSES, {"previous_response_id": "r1"}, "stored_responses"),
        (RESPONSES, {"conversation": "c1"}, "stored_responses"),
        (RESPONSES, {"prompt": {"id": "p1"}}, "stored_prompts"),
        (RESPONSES, {"background": True}, "background"),
        (RESPONSES, {"service_tier": "flex"}, "service_tier"),
        (RESPONSES, item("item_reference", id="i1"), "stored_responses"),
        (RESPONSES, item(None, id="i1"), "stored_responses"),
        (RESPONSES, item("reasoning", id="rs1", summary=[]), "stored_responses"),
        (RESPONSES, item("mcp_approval_response", approve=True), "remote_mcp"),
        (RESPONSES, item("additional_tools"), "field:input[].type=additional_tools"),
        (RESPONSES, item(None, role="user", content=[{"type": "input_image", "image_url": URL}]),
         "image_url"),
        (RESPONSES, item("function_call_output", output=[{"type": "input_image", "file_id": "f"}]),
         "stored_files"),
        (RESPONSES, item(None, role="user", content=[{"type": "input_file", "file_url": URL}]),
         "file_url"),
        (RESPONSES, item(None, role="user", content=[{"type": "input_file", "file_data": URL}]),
         "file_url"),
        (RESPONSES, item(None, role="user", content=[
            {"type": "input_audio", "input_audio": {"data": URL}}]), "file_url"),
        (RESPONSES, tool("function", name="a", parameters={"$ref": URL}), "file_url"),
        (RESPONSES, {"text": {"format": {"type": "json_schema", "schema": {"$ref": URL}}}},
         "file_url"),
        (MESSAGES, {"tools": [{"name": "a", "input_schema": {"$dynamicRef": URL}}]}, "file_url"),
        (MESSAGES, said({"type": "image", "source": {"type": "base64", "data": URL}}), "file_url"),
        (GEMINI, generated({"inlineData": {"data": URL}}), "file_url"),
        (GEMINI, {"generationConfig": {"responseJsonSchema": {"$ref": URL}}}, "file_url"),
        (MESSAGES, {"mcp_servers": [{"type": "url", "url": URL}]}, "remote_mcp"),
        (MESSAGES, tool("web_search_20250305", name="web_search"), "web_search"),
        (MESSAGES, tool("web_fetch_20250910", name="web_fetch"), "web_fetch"),
        (MESSAGES, tool("code_execution_20250825", name="c"), "code_interpreter"),
        (MESSAGES, tool("computer_20250124", name="computer"), "computer_use"),
        (MESSAGES, tool("mcp_toolset"), "remote_mcp"),
        (MESSAGES, {"container": "c1"}, "code_interpreter"),
        (MESSAGES, {"service_tier": "auto"}, "service_tier"),
        (MESSAGES, {"speed": "fast"}, "service_tier"),
        (MESSAGES, said({"type": "image", "source": {"type": "url", "url": URL}}), "image_url"),
        (MESSAGES, said({"type": "image", "source": {"type": "file", "file_id": "f"}}),
         "stored_files"),
        (MESSAGES, said({"type": "document", "source": {"type": "url", "url": URL}}), "file_url"),
        (MESSAGES, said({"type": "tool_result", "content": [
            {"type": "image", "source": {"type": "url", "url": URL}}]}), "image_url"),
        (MESSAGES, said({"type": "document", "source": {"type": "content", "content": [
            {"type": "image", "source": {"type": "url", "url": URL}}]}}), "image_url"),
        (MESSAGES, said({"type": "container_upload", "file_id": "f"}), "stored_files"),
        (MESSAGES, {"context_management": {}}, "field:context_management"),
        (GEMINI, {"tools": [{"googleSearch": {}}]}, "web_search"),
        (GEMINI, {"tools": [{"googleSearchRetrieval": {}}]}, "web_search"),
        (GEMINI, {"tools": [{"google_search": {}}]}, "web_search"),
        (GEMINI, {"tools": [{"urlContext": {}}]}, "web_fetch"),
        (GEMINI, {"tools": [{"codeExecution": {}}]}, "code_interpreter"),
        (GEMINI, {"tools": [{"fileSearch": {}}]}, "file_search"),
        (GEMINI, {"tools": [{"computerUse": {}}]}, "computer_use"),
        (GEMINI, {"tools": [{"ofTomorrow": {}}]}, "field:tools[].ofTomorrow"),
        (GEMINI, {"toolConfig": {"retrievalConfig": {}}}, "field:toolConfig.retrievalConfig"),
        (GEMINI, {"cachedContent": "cachedContents/1"}, "stored_responses"),
        (GEMINI, {"model": "dear"}, "field:model"),
        (GEMINI, generated({"fileData": {"fileUri": URL}}), "file_url"),
        (GEMINI, generated({"functionResponse": {"parts": [{"fileData": {"fileUri": URL}}]}}),
         "file_url"),
        (GEMINI, generated({"executableCode": {"code": "1"}}), "code_interpreter"),
        (GEMINI, {"systemInstruction": {"parts": [{"fileData": {"fileUri": URL}}]}}, "file_url"),
        (GEMINI, generated({"file_data": {"file_uri": URL}}), "file_url"),
        (GEMINI, {"generation_config": {"maxOutputTokens": 1}}, "field:generation_config"),
        (GEMINI, {"generationConfig": {"max_output_tokens": 1}},
         "field:generationConfig.max_output_tokens"),
        (EMBEDDINGS, {"input": {"url": URL}}, "field:input"),
        (EMBEDDINGS, {"input": [{"url": URL}]}, "field:input[]"),
        (EMBEDDINGS, {"input": "a", "tools": []}, "field:tools"),
    ],
)  # fmt: skip
def test_a_capability_is_found_by_its_name(
    path: str, request_fields: dict[str, Any], need: str
) -> None:
    assert list(found(path, **request_fields)) == [need]


@pytest.mark.parametrize("path", ALLOWED_FIELDS)
@pytest.mark.parametrize("header", ["anthropic-beta", "openai-beta"])
def test_each_beta_needs_its_own_grant(path: str, header: str) -> None:
    assert list(found(path, {header: "mcp-client-2025-11-20, other"})) == [
        "beta:mcp-client-2025-11-20",
        "beta:other",
    ]


def test_the_beta_that_a_tested_agent_sends_by_default_needs_no_grant() -> None:
    assert found(MESSAGES, {"anthropic-beta": "prompt-caching-2024-07-31"}) == {}


@pytest.mark.parametrize("value", ["é", "a\tb", "x" * 1000])
def test_a_strange_beta_is_shown_safely(value: str) -> None:
    (need,) = found(CHAT, {"openai-beta": value})
    assert need.isascii()
    assert need.isprintable()
    assert len(need) < 100


@pytest.mark.parametrize(
    ("path", "request_fields"),
    [
        (CHAT, {"store": False, "service_tier": None, "web_search_options": None}),
        (CHAT, {"service_tier": "default", "stop": ["a"], "logit_bias": {"5": 1}, "n": 2}),
        (CHAT, said({"type": "image_url", "image_url": {"url": DATA, "detail": "low"}})),
        (CHAT, {"messages": [{"role": "assistant", "content": None, "audio": None,
                              "tool_calls": [{"id": "c", "type": "function", "index": 0,
                                              "function": {"name": "a", "arguments": "{}"}}]}]}),
        (CHAT, {"tool_choice": {"type": "function", "function": {"name": "a"}}}),
        (CHAT, tool("function", function={"name": "a", "parameters": {"any": [{"type": "mcp"}]}})),
        (CHAT, tool("function", function={"name": "a", "parameters": {
            "$schema": "http://json-schema.org/draft-07/schema#", "$defs": {"a": {"type": "null"}},
            "properties": {"b": {"$ref": "#/$defs/a"}, "$ref": {"type": "string"}}}})),
        (CHAT, said({"type": "file", "file": {"file_data": DATA, "filename": "a"}},
                    {"type": "input_audio", "input_audio": {"data": "+/AA\n_-8=", "format": "m"}})),
        (CHAT, tool("custom", custom={"name": "a", "format": {"type": "text"}})),
        (RESPONSES, {"input": "text", "background": False, "previous_response_id": None}),
        (RESPONSES, tool("local_shell")),
        (RESPONSES, item("local_shell_call", call_id="c", action={"command": ["ls"]})),
        (RESPONSES, item("local_shell_call_output", call_id="c", output="a")),
        (RESPONSES, item("reasoning", id="rs1", summary=[], encrypted_content="x")),
        (RESPONSES, item(None, role="user", content=[{"type": "input_image", "image_url": DATA}])),
        (RESPONSES, {"tool_choice": {"type": "function", "name": "a"}, "truncation": "auto"}),
        (MESSAGES, {"system": [{"type": "text", "text": "a", "cache_control": {"type": "e"}}]}),
        (MESSAGES, {"tools": [{"name": "a", "input_schema": {"type": "object"}}]}),
        (MESSAGES, tool("bash_20250124", name="bash")),
        (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 1024}, "mcp_servers": []}),
        (MESSAGES, said({"type": "tool_use", "id": "t", "name": "a", "input": {"url": URL},
                         "caller": {"type": "direct"}})),
        (MESSAGES, said({"type": "image", "source": {"type": "base64", "data": "AAAA",
                                                     "media_type": "image/png"}})),
        (MESSAGES, said({"type": "document", "title": "a", "citations": {"enabled": True},
                         "source": {"type": "text", "media_type": "text/plain", "data": "a"}})),
        (GEMINI, generated({"text": "a", "thoughtSignature": "x"},
                           {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                           {"functionCall": {"id": "c", "name": "a", "args": {"url": URL}}},
                           {"functionResponse": {"name": "a", "response": {"url": URL}}})),
        (GEMINI, {"tools": [{"functionDeclarations": [{"name": "a", "parameters": {"any": [1]}}]}],
                  "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
                  "generationConfig": {"temperature": 0, "responseSchema": {"type": "STRING"}}}),
        (EMBEDDINGS, {"input": "a", "dimensions": 3, "encoding_format": "base64"}),
        (EMBEDDINGS, {"input": ["a", "b"]}),
        (EMBEDDINGS, {"input": [[1, 2], [3]]}),
    ],
)  # fmt: skip
def test_text_images_and_tools_of_the_agent_need_nothing(
    path: str, request_fields: dict[str, Any]
) -> None:
    assert found(path, **request_fields) == {}


def test_a_model_that_searches_is_named_as_the_field_with_the_need() -> None:
    assert found(CHAT, model="some:online") == {"web_search": "model"}


def test_a_model_that_the_run_names_may_search() -> None:
    request: dict[str, Json] = {"model": "gpt-4o-search-preview"}
    assert needs_of(CHAT, request, {}, model="gpt-4o-search-preview", named=True).fields == {}


def test_the_number_of_listed_needs_is_bounded() -> None:
    request: dict[str, Json] = {f"field{number}": 1 for number in range(100)}
    assert len(needs_of(CHAT, request, {}, model="m", named=True).fields) == NEEDS_MAX


def test_an_image_has_unknown_tokens() -> None:
    picture: Json = {"type": "image_url", "image_url": {"url": DATA}}
    assert needs_of(CHAT, said(picture), {}, model="m", named=True).has_media
    text = said({"type": "text", "text": "a"})
    assert not needs_of(CHAT, text, {}, model="m", named=True).has_media
    drawn: Json = {"inlineData": {"mimeType": "image/png", "data": "AA"}}
    assert needs_of(GEMINI, generated(drawn), {}, model="m", named=True).has_media


@pytest.mark.parametrize("name", [*(item.value for item in Capability), "field:top_k", "beta:a-1"])
def test_a_run_can_grant(name: str) -> None:
    assert is_grant(name)


@pytest.mark.parametrize("name", ["", "everything", "field:", "beta:", "field:a b", "beta:é"])
def test_a_run_cannot_grant(name: str) -> None:
    assert not is_grant(name)


PLAIN: dict[str, dict[str, Any]] = {
    CHAT: {
        **said({"type": "text", "text": "Hello."}),
        **{"max_tokens": 9, "temperature": 0.5, "stop": ["x"], "stream": True, "seed": 1},
    },
    RESPONSES: {"input": "Hello.", "instructions": "Be brief.", "max_output_tokens": 9},
    MESSAGES: {
        **said({"type": "text", "text": "Hello."}),
        **{"system": "Be brief.", "max_tokens": 9, "stop_sequences": ["x"], "top_k": 3},
    },
}


@pytest.mark.parametrize("path", PLAIN)
def test_the_plain_fields_of_a_dialect_need_no_grant(path: str) -> None:
    assert found(path, **PLAIN[path]) == {}
    for name in PLAIN[path]:
        assert found(path, **{f"{name}_": PLAIN[path][name]}) != {}
