"""Uses the clients of OpenAI, Anthropic and Google, whole and streamed, with tools and an image."""

import sys

from anthropic import Anthropic
from google import genai
from google.genai import types
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

# Embeddings.
print(len(openai.embeddings.create(model=MODEL, input=["a", "b"], dimensions=2).data))

# Gemini: a tool call, its result, an image, a stream.
gemini = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=address))
declared = types.FunctionDeclaration(
    name="look", description="Look.", parameters_json_schema=SCHEMA
)
config = types.GenerateContentConfig(
    system_instruction="Be brief.",
    max_output_tokens=50,
    temperature=0,
    tools=[types.Tool(function_declarations=[declared])],
    thinking_config=types.ThinkingConfig(thinking_budget=0),
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)
image = types.Part.from_bytes(data=b"x", mime_type="image/png")
contents = [types.Content(role="user", parts=[types.Part.from_text(text="Look."), image])]
answered = gemini.models.generate_content(model=MODEL, contents=contents, config=config)
contents.append(answered.candidates[0].content)
result = types.Part.from_function_response(name="look", response={"result": "1"})
contents.append(types.Content(role="user", parts=[result]))
print(gemini.models.generate_content(model=MODEL, contents=contents, config=config).text)
stream = gemini.models.generate_content_stream(model=MODEL, contents=contents, config=config)
print("".join(part.text or "" for part in stream))
