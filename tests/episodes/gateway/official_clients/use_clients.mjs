// Uses OpenAI's and Anthropic's clients for TypeScript, whole and streamed, with tools and an image.

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const model = "m1";
const image = "iVBORw0KGgo=";
const parameters = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };
const address = process.argv[2];
const openai = new OpenAI({ baseURL: `${address}/v1`, apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: address, apiKey: "none", maxRetries: 0 });

// Chat completions: a tool call, its result, an image, a stream.
const look = { name: "look", description: "Look.", parameters };
const url = `data:image/png;base64,${image}`;
const messages = [
  { role: "developer", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "Look." }, { type: "image_url", image_url: { url } }] },
];
const chat = { model, messages, tools: [{ type: "function", function: look }], max_tokens: 50 };
const reply = (await openai.chat.completions.create(chat)).choices[0].message;
messages.push(reply, { role: "tool", tool_call_id: reply.tool_calls[0].id, content: "1" });
console.log((await openai.chat.completions.create(chat)).choices[0].message.role);
const stream = openai.chat.completions.stream({ ...chat, stream_options: { include_usage: true } });
console.log((await stream.finalMessage()).role);

// Responses: a tool call, its result, an image, a stream.
const input = [
  { role: "user", content: [{ type: "input_text", text: "Look." }, { type: "input_image", image_url: url, detail: "low" }] },
];
const asked = { model, input, tools: [{ type: "function", strict: false, ...look }], max_output_tokens: 50 };
const response = await openai.responses.create(asked);
input.push(...response.output, { type: "function_call_output", call_id: response.output[0].call_id, output: "1" });
console.log((await openai.responses.create(asked)).status);
console.log((await openai.responses.stream(asked).finalResponse()).status);

// Messages: a tool call, its result, an image, a stream.
const source = { type: "base64", media_type: "image/png", data: image };
const turns = [{ role: "user", content: [{ type: "text", text: "Look." }, { type: "image", source }] }];
const tool = { name: "look", description: "Look.", input_schema: parameters };
const sent = { model, messages: turns, tools: [tool], system: "Be brief.", max_tokens: 50 };
const message = await anthropic.messages.create(sent);
const result = { type: "tool_result", tool_use_id: message.content[0].id, content: "1" };
turns.push({ role: "assistant", content: message.content }, { role: "user", content: [result] });
console.log((await anthropic.messages.create(sent)).type);
console.log((await anthropic.messages.stream(sent).finalMessage()).type);
