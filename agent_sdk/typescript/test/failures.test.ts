/** What a session says when things go wrong, and who is at fault; at a seat that follows a script. */

import { Server, ServerCredentials, type ServerWritableStream } from "@grpc/grpc-js";
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";

import { connect, ConnectionLost, type ConnectOptions, DeadlinePassed, NotReachable, ServiceFailed, type Session } from "../src/index.js";
import * as pb from "../src/generated/fumehood/v1/tool.js";

type Answering = (call: pb.CallToolRequest) => pb.CallToolResponse | "hang up" | "stay silent";

const said = (result: pb.CallToolResponse["result"], rest: Partial<pb.CallToolResponse> = {}): pb.CallToolResponse => ({
  result,
  remaining: {},
  ended: false,
  ...rest,
});
const value = (json = "{}", rest = {}) => said({ $case: "valueJson", value: json }, rest);

class ScriptedSeat {
  readonly received: pb.CallToolRequest[] = [];
  /** Answers the requests for the task that wait, if it is set. */
  waiting: (() => void)[] | undefined;
  readonly #server = new Server();

  constructor(answer: Answering) {
    const heard = (call: pb.CallToolRequest) => {
      this.received.push(call);
      return answer(call);
    };
    this.#server.addService(pb.ToolServiceService, {
      getTask: (_: unknown, done: (error: null, task: pb.GetTaskResponse) => void) => {
        const answer = () => done(null, { instruction: "", tools: [], remaining: {}, turn: 0, asksConfidence: false });
        if (this.waiting) this.waiting.push(answer);
        else answer();
      },
      callTool: ({ request }: { request: pb.CallToolRequest }, done: (error: object | null, response?: pb.CallToolResponse) => void) => {
        const response = heard(request);
        if (response === "hang up") done({ code: 14, details: "gone" });
        else if (response !== "stay silent") done(null, response);
      },
      interact: (call: ServerWritableStream<pb.InteractRequest, pb.InteractResponse>) => {
        call.on("data", ({ request }: pb.InteractRequest) => {
          if (request?.$case !== "call") return;
          const response = heard(request.value);
          if (response === "hang up") call.emit("error", { code: 14, details: "gone" });
          else if (response !== "stay silent") call.write({ response: { $case: "call", value: response } });
        });
        call.on("end", () => call.end());
      },
    } as never);
  }

  listen(path: string): Promise<unknown> {
    return new Promise((resolve, reject) =>
      this.#server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve(undefined))),
    );
  }

  vanish(): void {
    this.#server.forceShutdown();
  }
}

let folder: string;
const seats: ScriptedSeat[] = [];
const sessions: Session[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "g"));
});
afterEach(() => {
  for (const session of sessions.splice(0)) session.close();
  for (const seat of seats.splice(0)) seat.vanish();
  rmSync(folder, { recursive: true, force: true });
});

async function connected(options?: ConnectOptions): Promise<Session> {
  const session = await connect(options);
  sessions.push(session);
  return session;
}

async function scripted(answer: Answering, name = "s"): Promise<ScriptedSeat & { path: string }> {
  const seat = new ScriptedSeat(answer);
  seats.push(seat);
  const path = join(folder, name);
  await seat.listen(path);
  return Object.assign(seat, { path });
}

describe("finding the socket", () => {
  test("it may be called anything", async () => {
    for (const name of ["a b", "100%25", "what?", "#1", "ψ"]) {
      const { path } = await scripted(() => value(), name);
      await connected({ path });
    }
  });

  test("the environment names it, and a path that is given wins", async () => {
    const { path } = await scripted(() => value());
    process.env["FUMEHOOD_SOCKET"] = path;
    const session = await connected();
    assert.equal(session.path, path);
    process.env["FUMEHOOD_SOCKET"] = "/nowhere";
    await connected({ path });
    delete process.env["FUMEHOOD_SOCKET"];
  });

  test("one that is not there yet is waited for", async () => {
    const connecting = connect({ path: join(folder, "s") });
    await new Promise((resolve) => setTimeout(resolve, 150));
    await scripted(() => value());
    (await connecting).close();
  });

  test("a connected service may answer after the timeout", async () => {
    const seat = await scripted(() => value());
    seat.waiting = [];
    const connecting = connected({ path: seat.path, serviceTimeoutMs: 100 });
    while (seat.waiting.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
    for (const answer of seat.waiting) answer();
    assert.equal((await connecting).path, seat.path);
  });

  test("a missing socket is not reachable", async () => {
    await assert.rejects(connect({ path: join(folder, "none"), serviceTimeoutMs: 50 }), NotReachable);
    await assert.rejects(connect({ path: `/${"x".repeat(107)}` }), NotReachable);
    const heard: Socket[] = [];
    const deaf = createServer((socket) => heard.push(socket)).listen(join(folder, "deaf"));
    await assert.rejects(connect({ path: join(folder, "deaf"), serviceTimeoutMs: 200 }), NotReachable);
    for (const socket of heard) socket.destroy();
    deaf.close();
  });
});

describe("a call without an answer", () => {
  test("over the stream, a lost connection is said, and the next call has a new stream", async () => {
    const answers = ["hang up" as const, value('{"n":2}')];
    const { path, received } = await scripted(() => answers.shift()!);
    const session = await connected({ path });
    await assert.rejects(session.call("a"), ConnectionLost);
    assert.equal((await session.call("b")).result.kind, "value");
    assert.deepEqual(received.map((call) => call.toolName), ["a", "b"]);
  });

  test("by unary calls, the same call is sent again under the same name", async () => {
    const answers = ["hang up" as const, "hang up" as const, value()];
    const { path, received } = await scripted(() => answers.shift()!);
    const session = await connected({ path, stream: false });
    assert.equal((await session.call("a")).result.kind, "value");
    assert.equal(received.length, 3);
    assert.equal(new Set(received.map((call) => call.callId)).size, 1);
    assert.notEqual(received[0]?.callId, "");
  });

  test("an unanswered call fails after the service timeout", async () => {
    const { path } = await scripted(() => "hang up");
    const session = await connected({ path, stream: false, serviceTimeoutMs: 1000 });
    await assert.rejects(session.call("a"), ConnectionLost);
  });

  for (const stream of [true, false]) {
    test(`a deadline passes ${stream ? "beside the stream" : "without one"}, and the work goes on`, async () => {
      const { path } = await scripted(({ toolName }) => (toolName === "b" ? "stay silent" : value()));
      const session = await connected({ path, stream });
      await session.call("a");
      await assert.rejects(session.call("b", {}, { deadlineMs: 50 }), DeadlinePassed);
      assert.equal((await session.call("c")).result.kind, "value");
      });
  }
});

for (const stream of [true, false]) {
  test(`who hangs up ${stream ? "a stream" : "without one"} hears no answer, then or later`, async () => {
    const { path } = await scripted(() => "stay silent");
    const session = await connect({ path, stream });
    const calling = assert.rejects(session.call("a"), ConnectionLost);
    await new Promise((resolve) => setTimeout(resolve, 50));
    session.close();
    session.close();
    await calling;
    await assert.rejects(session.call("b"), ConnectionLost);
    await assert.rejects(session.submit(), ConnectionLost);
  });
}

describe("an answer that makes no sense", () => {
  const nonsense: [string, pb.CallToolResponse][] = [
    ["no result", said(undefined)],
    ["no JSON", value("{")],
    ["no object", value("[1]")],
    ["an unknown refusal", said({ $case: "refusal", value: { kind: 99 as pb.RefusalKind, limit: 0, actual: 0 } })],
  ];
  for (const [what, response] of nonsense) {
    test(`${what} is a failure of the service`, async () => {
      const { path } = await scripted(() => response);
      const session = await connected({ path });
      await assert.rejects(session.call("a"), ServiceFailed);
      });
  }
});

test("what was recorded is handed over", async () => {
  const { path } = await scripted(() => value("{}", { recordedArgumentsJson: '{"b":1,"a":2}' }));
  const session = await connected({ path });
  const { recordedArguments } = await session.call("a", { a: 2 });
  assert.equal(JSON.stringify(recordedArguments), '{"b":1,"a":2}');
});

test("results of sixteen megabytes arrive", async () => {
  const text = "ψ".repeat(8 << 20);
  const { path } = await scripted(() => value(JSON.stringify({ text })));
  for (const stream of [true, false]) {
    const session = await connected({ path, stream });
    const { result } = await session.call("a");
    assert.ok(result.kind === "value" && result.output["text"] === text);
  }
});
