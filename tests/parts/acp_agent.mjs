// A small agent on the official library of the Agent Client Protocol. Its first argument names what it does.

import { AgentSideConnection, ndJsonStream, RequestError } from "@agentclientprotocol/sdk";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";

const scene = process.argv[2];
const OPTIONS = [
  { optionId: "always", kind: "allow_always", name: "Always" },
  { optionId: "once", kind: "allow_once", name: "Once" },
  { optionId: "no", kind: "reject_once", name: "No" },
];

/** The MCP server of the session, over its pipe. */
class Tools {
  #lines;
  #server;
  #number = 0;

  constructor({ command, args, env }) {
    const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    this.#server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], env: variables });
    this.#lines = createInterface({ input: this.#server.stdout })[Symbol.asyncIterator]();
  }

  async ask(method, params) {
    this.#server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: ++this.#number, method, params })}\n`);
    return JSON.parse((await this.#lines.next()).value).result;
  }

  async call(name, given) {
    const result = await this.ask("tools/call", { name, arguments: given });
    return result.content[0].text;
  }
}

class Agent {
  #client;
  #tools;
  #cancelled;
  #cancel;

  constructor(client) {
    this.#client = client;
    this.#cancelled = new Promise((resolve) => (this.#cancel = resolve));
  }

  async initialize({ protocolVersion, clientCapabilities }) {
    if (scene === "reports_its_start") console.error("initialized");
    if (scene === "other_version") return { protocolVersion: 2, agentCapabilities: {} };
    if (clientCapabilities.fs.readTextFile || clientCapabilities.terminal) throw RequestError.invalidParams();
    return { protocolVersion, agentCapabilities: {} };
  }

  async newSession({ mcpServers }) {
    if (scene === "wants_login") throw RequestError.authRequired();
    if (scene === "reports_its_start") console.error("session opened");
    console.log("a line that is no message");
    this.#tools = new Tools(mcpServers[0]);
    const clientInfo = { name: "test", version: "0" };
    await this.#tools.ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    return { sessionId: 'a "session"' };
  }

  async authenticate() {}

  async cancel() {
    this.#cancel();
  }

  async prompt({ sessionId, prompt }) {
    const update = (update) => this.#client.sessionUpdate({ sessionId, update });
    const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    const call = async (name, given) => {
      const toolCall = { toolCallId: "1", title: `call of ${name}`, rawInput: given };
      await update({ sessionUpdate: "tool_call", status: "pending", kind: "other", ...toolCall });
      const { outcome } = await this.#client.requestPermission({ sessionId, toolCall, options: OPTIONS });
      const allowed = outcome.outcome === "selected" && outcome.optionId === "once";
      const output = allowed ? await this.#tools.call(name, given) : "rejected";
      await update({ sessionUpdate: "tool_call_update", toolCallId: "1", status: allowed ? "completed" : "failed" });
      return output;
    };
    await say("Let me look. ");
    if (scene === "crashes") process.exit(7);
    if (scene === "is_killed") process.kill(process.pid, "SIGKILL");
    if (scene === "raises") throw new Error("no idea");
    if (scene === "reads_files") {
      const refused = await this.#client.readTextFile({ sessionId, path: "/etc/passwd" }).catch((error) => error.code);
      await say(`${refused}`);
      return { stopReason: "end_turn" };
    }
    if (scene === "submits_itself") {
      await call("submit", { answer: "mine" });
      await this.#cancelled;
      return { stopReason: "cancelled" };
    }
    if (scene === "looks") {
      const output = await call("get_account", { id: "ax1" });
      await say(`\n"${prompt[0].text}" é 😀 \\n: `);
      await say(`${output}\n`);
      return { stopReason: "end_turn" };
    }
    if (scene === "echoes") {
      await update({ sessionUpdate: "tool_call", toolCallId: "1", title: "nothing", status: "completed" });
      await say(prompt[0].text);
      return { stopReason: "end_turn" };
    }
    return { stopReason: scene === "reports_its_start" ? "end_turn" : scene };
  }
}

const stream = ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
const connection = new AgentSideConnection((client) => new Agent(client), stream);
await connection.closed;
process.exit();
