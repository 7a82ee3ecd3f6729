// Continue's command line as it is published: its model behind a base URL, tools by MCP over a pipe, a shell in the box.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";

const HELPER = "/fumehood/bin/fumehood";
const CN = "/continue/node_modules/@continuedev/cli/dist/cn.js";
const CONFIG = "/tmp/config.yaml";

const run = (command, ...words) =>
  execFileSync(command, words, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

const base = process.env.OPENAI_BASE_URL;
const model = (await (await fetch(`${base}/models`)).json()).data[0].id;
// "anthropic" asks for Anthropic's messages.
const provider = process.argv[2] ?? "openai";
const asked = { name: model, provider, model, apiBase: `${base}/`, apiKey: "none", roles: ["chat"] };
const seat = { name: "seat", command: HELPER, args: ["mcp"] };
// JSON is YAML.
const config = { name: "box", version: "1.0.0", schema: "v1", models: [asked], mcpServers: [seat] };
writeFileSync(CONFIG, JSON.stringify(config));

const said = run(process.execPath, CN, "--config", CONFIG, "--auto", "--print", run(HELPER, "task"));
run(HELPER, "submit", said.trim());
