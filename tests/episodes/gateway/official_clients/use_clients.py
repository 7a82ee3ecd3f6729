"""Uses OpenAI's and Anthropic's clients for Python, whole and streamed, with tools and an image."""

import sys

from anthropic import Anthropic
from openai import OpenAI

MODEL = "m1"
IMAGE = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
address = sys.argv[1]
openai = OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
anthropic = Anthropic(base_url=address, api_key="none", max_retries=0)

# Chat completions: a tool call, its result, an image, a stream.
function = {"name": "look", "description": "Look.", "parameters": SCHEMA, "strict": True}
tools = [{"type": "function", "function": function}]
messages = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Look."},
            {
                "type": "image_url",
                "image_url": {"url": f"data:image/png;base64,{IMAGE}", "detail": "low"},
            },
        ],
    },
]
chat = {"model": MODEL, "tools": tools, "tool_choice": "auto", "max_completion_tokens": 50}
reply = openai.chat.completions.create(messages=messages, **chat).choices[0].message
messages.append(reply)
messages.append({"role": "tool", "tool_call_id": reply.tool_calls[0].id, "content": "1"})
print(openai.chat.completions.create(messages=messages, **chat).choices[0].message.role)
messages.append(reply.model_dump())
chunks = openai.chat.completions.create(
    messages=messages, stream=True, stream_options={"include_usage": True}, **chat
)
print(sum(1 for _ in chunks) > 1)
schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}
more = {"temperature": 0, "top_p": 1, "seed": 1, "n": 1, "stop": ["x"], "user": "u", "store": False}
openai.chat.completions.create(model=MODEL, messages=messages, response_format=schema, **more)

# Responses: a tool call, its result, an image, a stream.
tools = [{"type": "function", **function}]
items = [
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Look."},
            {
                "type": "input_image",
                "image_url": f"data:image/png;base64,{IMAGE}",
                "detail": "low",
            },
        ],
    }
]
asked = {"model": MODEL, "tools": tools, "instructions": "Be brief.", "max_output_tokens": 50}
response = openai.responses.create(input=items, **asked)
items += [item.model_dump() for item in response.output]
items.append({"type": "function_call_output", "call_id": response.output[0].call_id, "output": "1"})
print(openai.responses.create(input=items, **asked).status)
with openai.responses.stream(
    input=items, reasoning={"effort": "low"}, text={"verbosity": "low"}, **asked
) as stream:
    print(stream.get_final_response().status)

# Messages: a tool call, its result, an image, a stream.
tools = [{"name": "look", "description": "Look.", "input_schema": SCHEMA}]
source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
messages = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "Look."}, {"type": "image", "source": source}],
    }
]
system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
asked = {"model": MODEL, "tools": tools, "system": system, "max_tokens": 50}
message = anthropic.messages.create(messages=messages, **asked)
messages.append({"role": "assistant", "content": message.content})
messages.append(
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": message.content[0].id, "content": "1"}],
    }
)
print(anthropic.messages.create(messages=messages, **asked).type)
with anthropic.messages.stream(
    messages=messages, thinking={"type": "enabled", "budget_tokens": 1024}, **asked
) as stream:
    print(stream.get_final_message().type)
