"""The fields that a model request may have, per dialect.

Sources: the references of OpenAI's chat completions, responses and embeddings, of Anthropic's
messages and of Google's generateContent, and the fields that their clients send. A field is allowed
if it can only change the text of the response. Everything that makes a provider open a connection,
run code, keep data or change its price is a :class:`Capability`. A field that is not listed is
refused by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from fumehood.core.json_values import Json, JsonObject
from fumehood.gateway.capabilities import (
    BETA_PREFIX,
    Capability,
    Needs,
    Rule,
    anything,
    by_type,
    data_url,
    embedded,
    fields,
    items,
    media,
    needs,
    scalar,
    scalars,
    schema,
    shown,
    text_or,
)

_PROVIDER_TOOLS: Mapping[str, Rule] = {
    "web_search*": needs(Capability.WEB_SEARCH),
    "web_fetch*": needs(Capability.WEB_FETCH),
    "code_interpreter*": needs(Capability.CODE_INTERPRETER),
    "code_execution*": needs(Capability.CODE_INTERPRETER),
    "bash_code_execution*": needs(Capability.CODE_INTERPRETER),
    "text_editor_code_execution*": needs(Capability.CODE_INTERPRETER),
    "shell*": needs(Capability.CODE_INTERPRETER),
    "mcp*": needs(Capability.REMOTE_MCP),
    "computer*": needs(Capability.COMPUTER_USE),
    "file_search*": needs(Capability.FILE_SEARCH),
    "image_generation*": needs(Capability.IMAGE_GENERATION),
    "server_tool_use": needs(Capability.WEB_SEARCH),
}
"""Types of tools that the provider runs, and of their calls and results in a conversation."""


def _same(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


_TIER = needs(Capability.SERVICE_TIER, "default", "standard_only")
_CACHE: Mapping[str, Rule] = {
    # A longer lifetime has another price.
    "cache_control": fields({"type": scalar, "ttl": needs(Capability.SERVICE_TIER, "5m")})
}
_BREAKPOINT: Mapping[str, Rule] = {"prompt_cache_breakpoint": scalars}
_TOOL_OPTIONS: Mapping[str, Rule] = {
    # Programs of the provider may call a tool, too.
    "allowed_callers": needs(Capability.CODE_INTERPRETER, ["direct"], []),
    "output_schema": schema,
}
_MODALITIES = items(needs(Capability.MEDIA_OUTPUT, "text", "TEXT"))
_STORED = needs(Capability.STORED_RESPONSES)
_STORED_FILE = needs(Capability.STORED_FILES)

# OpenAI's chat completions

_AUDIO = media(
    fields({"type": scalar, "input_audio": fields({"data": embedded, "format": scalar})})
)
_CHAT_PART = by_type(
    {
        "text": fields({**_same("type text", scalar), **_CACHE}),
        "refusal": fields(_same("type refusal", scalar)),
        "image_url": media(
            fields(
                {
                    "type": scalar,
                    "image_url": fields({"url": data_url(Capability.IMAGE_URL), "detail": scalar}),
                    **_CACHE,
                }
            )
        ),
        "input_audio": _AUDIO,
        "file": media(
            fields(
                {
                    "type": scalar,
                    "file": fields(
                        {
                            "file_data": embedded,
                            "filename": scalar,
                            "file_id": _STORED_FILE,
                        }
                    ),
                    **_CACHE,
                }
            )
        ),
    }
)
_FUNCTION = fields({**_same("name description strict", scalar), "parameters": schema})
_CHAT_MESSAGE = fields(
    {
        **_same("role name tool_call_id refusal reasoning reasoning_content", scalar),
        "content": text_or(items(_CHAT_PART)),
        "tool_calls": items(
            fields(
                {
                    **_same("id type index", scalar),
                    "function": scalars,
                    "custom": scalars,
                }
            )
        ),
        "function_call": scalars,
        "annotations": anything,
        # The client library litellm repeats what it read in a reply.
        "provider_specific_fields": scalars,
        "audio": _STORED,
        **_CACHE,
    }
)
_CHAT_TOOL = by_type(
    {
        "function": fields({"type": scalar, "function": _FUNCTION, **_CACHE}),
        "custom": fields(
            {
                "type": scalar,
                "custom": fields({**_same("name description", scalar), "format": anything}),
            }
        ),
        **_PROVIDER_TOOLS,
    }
)
_TOOL_CHOICE = text_or(
    by_type(
        {
            **_same("function custom tool auto any none allowed_tools", anything),
            **_PROVIDER_TOOLS,
        }
    )
)
_CHAT = fields(
    {
        **_same(
            "model frequency_penalty logprobs max_completion_tokens max_tokens n "
            "parallel_tool_calls presence_penalty prompt_cache_key prompt_cache_retention "
            "reasoning_effort safety_identifier seed stream temperature top_logprobs top_p user "
            "verbosity",
            scalar,
        ),
        **_same(
            "function_call logit_bias metadata prompt_cache_options stop stream_options",
            scalars,
        ),
        "audio": needs(Capability.MEDIA_OUTPUT),
        "modalities": _MODALITIES,
        "messages": items(_CHAT_MESSAGE),
        "functions": items(_FUNCTION),
        "prediction": fields({"type": scalar, "content": text_or(items(_CHAT_PART))}),
        "response_format": fields({"type": scalar, "json_schema": schema}),
        "service_tier": _TIER,
        "store": _STORED,
        "tool_choice": _TOOL_CHOICE,
        "tools": items(_CHAT_TOOL),
        "web_search_options": needs(Capability.WEB_SEARCH),
    }
)

# OpenAI's responses

_RESPONSES_PART = by_type(
    {
        "input_text": fields({**_same("type text", scalar), **_BREAKPOINT}),
        "output_text": fields(
            {**_same("type text", scalar), **_same("annotations logprobs", anything)}
        ),
        **_same("summary_text reasoning_text", fields(_same("type text", scalar))),
        "refusal": fields(_same("type refusal", scalar)),
        "input_image": media(
            fields(
                {
                    **_same("type detail", scalar),
                    "image_url": data_url(Capability.IMAGE_URL),
                    "file_id": _STORED_FILE,
                    **_BREAKPOINT,
                }
            )
        ),
        "input_file": media(
            fields(
                {
                    **_same("type filename detail", scalar),
                    "file_data": embedded,
                    "file_url": needs(Capability.FILE_URL),
                    "file_id": _STORED_FILE,
                    **_BREAKPOINT,
                }
            )
        ),
        "input_audio": _AUDIO,
    }
)
_RESPONSES_CONTENT = text_or(items(_RESPONSES_PART))
_RESPONSES_MESSAGE = fields(
    {**_same("type role id status phase", scalar), "content": _RESPONSES_CONTENT}
)
_TOOL_OUTPUT = fields({**_same("type id call_id status", scalar), "output": _RESPONSES_CONTENT})
_REASONING = fields(
    {
        **_same("type id status encrypted_content", scalar),
        **_same("summary content", items(_RESPONSES_PART)),
    }
)


def _reasoning(value: Json, path: str, needed: Needs) -> None:
    # Without its encrypted content, the provider reads the reasoning that it stored under the ID.
    if isinstance(value, dict) and value.get("encrypted_content") is None:
        needed.add(Capability.STORED_RESPONSES.value, f"{path}.id")
    else:
        _REASONING(value, path, needed)


_RESPONSES_ITEM_BY_TYPE = by_type(
    {
        "message": _RESPONSES_MESSAGE,
        "function_call": fields(
            {
                **_same("type id call_id name namespace arguments status", scalar),
                "caller": scalars,
            }
        ),
        "custom_tool_call": fields(
            {**_same("type id call_id name namespace input status", scalar), "caller": scalars}
        ),
        **_same("function_call_output custom_tool_call_output", _TOOL_OUTPUT),
        "local_shell_call": fields({**_same("type id call_id status", scalar), "action": anything}),
        "local_shell_call_output": _TOOL_OUTPUT,
        "reasoning": _reasoning,
        "item_reference": _STORED,
        **_PROVIDER_TOOLS,
    }
)


def _responses_item(value: Json, path: str, needed: Needs) -> None:
    # An item with a role is a message, and one with only an ID refers to a stored item.
    if isinstance(value, dict) and value.get("type") is None:
        rule = _RESPONSES_MESSAGE if "role" in value else _STORED
        rule(value, path, needed)
    else:
        _RESPONSES_ITEM_BY_TYPE(value, path, needed)


_RESPONSES_TOOL = by_type(
    {
        "function": fields(
            {
                **_same("type name description strict", scalar),
                "parameters": schema,
                **_TOOL_OPTIONS,
            }
        ),
        "custom": fields(
            {**_same("type name description", scalar), "format": anything, **_TOOL_OPTIONS}
        ),
        "local_shell": fields(_same("type", scalar)),
        **_PROVIDER_TOOLS,
    }
)
_RESPONSES = fields(
    {
        **_same(
            "model instructions max_output_tokens max_tool_calls parallel_tool_calls "
            "prompt_cache_key prompt_cache_retention safety_identifier stream temperature "
            "top_logprobs top_p truncation user",
            scalar,
        ),
        **_same("include metadata prompt_cache_options reasoning stream_options", scalars),
        "background": needs(Capability.BACKGROUND),
        "conversation": _STORED,
        "input": text_or(items(_responses_item)),
        "previous_response_id": _STORED,
        "prompt": needs(Capability.STORED_PROMPTS),
        "service_tier": _TIER,
        "store": _STORED,
        "text": fields({"verbosity": scalar, "format": schema}),
        "tool_choice": _TOOL_CHOICE,
        "tools": items(_RESPONSES_TOOL),
    }
)

# Anthropic's messages

_TEXT_BLOCK = fields({**_same("type text", scalar), "citations": anything, **_CACHE})


def _source(capability: Capability) -> Rule:
    return by_type(
        {
            "base64": fields({**_same("type media_type", scalar), "data": embedded}),
            "text": fields(_same("type media_type data", scalar)),
            "content": fields({"type": scalar, "content": text_or(items(_block))}),
            "url": needs(capability),
            "file": _STORED_FILE,
        }
    )


def _block(value: Json, path: str, needed: Needs) -> None:
    _BLOCK(value, path, needed)


_BLOCK = by_type(
    {
        "text": _TEXT_BLOCK,
        "image": media(fields({"type": scalar, "source": _source(Capability.IMAGE_URL), **_CACHE})),
        "document": media(
            fields(
                {
                    **_same("type title context", scalar),
                    "citations": scalars,
                    "source": _source(Capability.FILE_URL),
                    **_CACHE,
                }
            )
        ),
        "search_result": fields(
            {
                **_same("type source title", scalar),
                "citations": scalars,
                "content": items(_TEXT_BLOCK),
                **_CACHE,
            }
        ),
        "thinking": fields(_same("type thinking signature", scalar)),
        "redacted_thinking": fields(_same("type data", scalar)),
        "tool_use": fields(
            {**_same("type id name", scalar), "input": anything, "caller": scalars, **_CACHE}
        ),
        "tool_result": fields(
            {
                **_same("type tool_use_id is_error", scalar),
                "content": text_or(items(_block)),
                **_CACHE,
            }
        ),
        "container_upload": _STORED_FILE,
        **_PROVIDER_TOOLS,
    }
)
_CLIENT_TOOL = fields(
    {
        **_same("type name description strict eager_input_streaming", scalar),
        "input_schema": schema,
        "input_examples": anything,
        **_CACHE,
        **_TOOL_OPTIONS,
    }
)
_RUN_BY_THE_AGENT = fields(
    {**_same("type name max_characters strict", scalar), **_CACHE, **_TOOL_OPTIONS}
)
_MESSAGES_TOOL = by_type(
    {
        "custom": _CLIENT_TOOL,
        **_PROVIDER_TOOLS,
        **_same("bash_2* text_editor_2* memory_2*", _RUN_BY_THE_AGENT),
    },
    default="custom",
)
_MESSAGES = fields(
    {
        **_same("model max_tokens stream temperature top_k top_p", scalar),
        **_same("metadata stop_sequences thinking cache_control", scalars),
        "container": needs(Capability.CODE_INTERPRETER),
        "inference_geo": needs(Capability.SERVICE_TIER),
        "mcp_servers": needs(Capability.REMOTE_MCP, []),
        "messages": items(fields({"role": scalar, "content": text_or(items(_BLOCK))})),
        "output_config": fields({"effort": scalar, "format": schema}),
        "service_tier": _TIER,
        "speed": needs(Capability.SERVICE_TIER, "standard"),
        "system": text_or(items(_TEXT_BLOCK)),
        "tool_choice": _TOOL_CHOICE,
        "tools": items(_MESSAGES_TOOL),
    }
)

# Google's generateContent. Its parser accepts names in camel case and in snake case, and Google's
# client mixes them. Fields that bound the response have one name, so that both are never given.


def _both(rules: Mapping[str, Rule]) -> Rule:
    snake = {re.sub("([A-Z])", r"_\1", name).lower(): rule for name, rule in rules.items()}
    return fields({**snake, **rules})


_GEMINI_DATA = media(_both({**_same("mimeType displayName", scalar), "data": embedded}))
_GEMINI_FILE = needs(Capability.FILE_URL)
_GEMINI_PART = _both(
    {
        **_same("text thought thoughtSignature", scalar),
        "inlineData": _GEMINI_DATA,
        "fileData": _GEMINI_FILE,
        "functionCall": _both({**_same("id name", scalar), "args": anything}),
        "functionResponse": _both(
            {
                **_same("id name willContinue scheduling", scalar),
                "response": anything,
                "parts": items(_both({"inlineData": _GEMINI_DATA, "fileData": _GEMINI_FILE})),
            }
        ),
        **_same("executableCode codeExecutionResult", needs(Capability.CODE_INTERPRETER)),
        **_same("mediaResolution videoMetadata", scalars),
    }
)
_GEMINI_CONTENT = _both({"role": scalar, "parts": items(_GEMINI_PART)})
_GEMINI_FUNCTION = _both(
    {
        **_same("name description behavior", scalar),
        **_same("parameters parametersJsonSchema response responseJsonSchema", schema),
    }
)
_GEMINI_TOOL = _both(
    {
        "functionDeclarations": items(_GEMINI_FUNCTION),
        **_same(
            "googleSearch googleSearchRetrieval googleMaps enterpriseWebSearch",
            needs(Capability.WEB_SEARCH),
        ),
        "urlContext": needs(Capability.WEB_FETCH),
        "codeExecution": needs(Capability.CODE_INTERPRETER),
        "computerUse": needs(Capability.COMPUTER_USE),
        **_same("fileSearch retrieval", needs(Capability.FILE_SEARCH)),
        "mcpServers": needs(Capability.REMOTE_MCP),
    }
)
_GEMINI_CONFIG = fields(
    {
        **_same(
            "temperature topP topK candidateCount maxOutputTokens presencePenalty "
            "frequencyPenalty seed responseMimeType responseLogprobs logprobs mediaResolution",
            scalar,
        ),
        **_same("stopSequences thinkingConfig", scalars),
        "responseModalities": _MODALITIES,
        **_same("responseSchema responseJsonSchema", schema),
        "imageConfig": needs(Capability.IMAGE_GENERATION),
    }
)
_CALLING = _both(
    {**_same("mode streamFunctionCallArguments", scalar), "allowedFunctionNames": scalars}
)
_GEMINI = fields(
    {
        "contents": items(_GEMINI_CONTENT),
        "systemInstruction": _GEMINI_CONTENT,
        "generationConfig": _GEMINI_CONFIG,
        "safetySettings": items(scalars),
        "tools": items(_GEMINI_TOOL),
        "toolConfig": _both({"functionCallingConfig": _CALLING}),
        "cachedContent": _STORED,
        "labels": scalars,
        "store": _STORED,
        "serviceTier": _TIER,
    }
)

# OpenAI's embeddings: a text, texts, tokens, or lists of tokens.


def _embedded(value: Json, path: str, needed: Needs) -> None:
    if isinstance(value, list):
        for item in value:
            scalars(item, f"{path}[]", needed)
            if isinstance(item, dict):
                needed.unknown(f"{path}[]")
    else:
        scalar(value, path, needed)


_EMBEDDINGS = fields({**_same("model encoding_format dimensions user", scalar), "input": _embedded})

ALLOWED_FIELDS: Mapping[str, Rule] = {
    "/v1/chat/completions": _CHAT,
    "/v1/responses": _RESPONSES,
    "/v1/messages": _MESSAGES,
    "/v1beta/models/MODEL:generateContent": _GEMINI,
    "/v1/embeddings": _EMBEDDINGS,
}
"""Path → rule for a whole request."""

_SEARCHING_MODELS = (
    "*:online*",
    "*-search*",
    "perplexity/*",
    "*deep-research*",
    "*sonar*",
    "*compound*",
    "*deepsearch*",
)
"""Patterns of models that search the web without a tool, so that the run must name them."""
BETA_HEADERS = ("anthropic-beta", "openai-beta")
"""Headers that switch on what the dialect does not have."""

_GENERAL_BETAS = frozenset({"prompt-caching-2024-07-31"})
"""Betas that the dialect has had without a header since; Continue sends it by default."""


def needs_of(
    path: str, request: JsonObject, headers: Mapping[str, str], *, model: str, named: bool
) -> Needs:
    """Return what a request needs.

    Args:
        path: of the dialect.
        request: the parsed request.
        headers: of the request, names in lower case.
        model: name of its model.
        named: whether the run names the model.
    """
    needed = Needs()
    ALLOWED_FIELDS[path](request, "", needed)
    if not named and any(fnmatchcase(model.casefold(), name) for name in _SEARCHING_MODELS):
        needed.add(Capability.WEB_SEARCH.value, "model")
    for header in BETA_HEADERS:
        for name in beta_names(headers, header):
            if name not in _GENERAL_BETAS:
                needed.add(BETA_PREFIX + shown(name), header)
    return needed


def beta_names(headers: Mapping[str, str], header: str) -> list[str]:
    """Return the names in a beta header."""
    return [name.strip() for name in headers.get(header, "").split(",") if name.strip()]
