/** A session at a real seat, by stream and by unary calls. */

import assert from "node:assert/strict";
import { after, before, describe, test, type TestContext } from "node:test";

import { connect, Ended, type JsonObject, parseExact, RawJson, Refused, type Value } from "../src/index.js";
import { Service, type Spec } from "./service.js";

let service: Service;
before(async () => {
  service = await Service.start();
});
after(() => service.stop());

const TOOLS = ["get_account", "update_account", "create_account", "close_account"];

for (const stream of [true, false]) {
  const seat = async (t: TestContext, spec: Spec = {}) => {
    const session = await connect({ path: await service.open(spec), stream });
    t.after(() => session.close());
    return session;
  };

  describe(stream ? "over one stream" : "by unary calls", () => {
    test("the task is there", async (t) => {
      const session = await seat(t, { instruction: "Say «ψ» twice.", budget: { steps: 6, retries: 0 } });
      const { instruction, tools, remaining, turn } = session.task;
      assert.equal(instruction, "Say «ψ» twice.");
      assert.deepEqual(tools.map((tool) => tool.name), TOOLS);
      assert.equal(tools[0]?.parameters["type"], "object");
      assert.deepEqual(remaining, { steps: 6, retries: 0 });
      assert.equal(turn, 1);
    });

    test("a value and a failure are replies", async (t) => {
      const session = await seat(t, { budget: { calls: 3, retries: 2 } });
      const { result, remaining, ended } = await session.call("get_account", { id: "ax1" });
      assert.ok(result.kind === "value");
      assert.deepEqual(result.output, { account: { id: "ax1", tier: "basic" } });
      assert.deepEqual(remaining, { calls: 2, retries: 2 });
      assert.equal(ended, false);
      const no = await session.call("get_account", { id: "nobody" });
      assert.ok(no.result.kind === "failure");
      assert.equal(no.result.code, "not_found");
      assert.deepEqual(no.remaining, { calls: 1, retries: 1 });
    });

    test("the reply that ends the work says so, and the next call is refused", async (t) => {
      const session = await seat(t, { budget: { calls: 1 } });
      assert.equal((await session.call("get_account", { id: "ax1" })).ended, false);
      const last = await session.call("get_account", { id: "ax1" });
      assert.ok(last.result.kind === "failure");
      assert.equal(last.result.code, "budget_exceeded");
      assert.ok(last.ended && session.ended);
      await assert.rejects(session.call("get_account"), Ended);
      assert.equal(await session.submit("too late"), false);
    });

    test("only the first submission counts", async (t) => {
      const session = await seat(t);
      assert.equal(session.task.asksConfidence, false);
      await assert.rejects(session.submit("42", 1.5), { kind: "malformed" });
      assert.equal(await session.submit("42 ψ", 0.8), true);
      assert.equal(session.ended, true);
      assert.equal(await session.giveUp("too late"), false);
    });

    test("problems with the model are recorded until one ends the work", async (t) => {
      const session = await seat(t);
      assert.equal(await session.report("reply_truncated"), true);
      assert.equal(session.ended, false);
      assert.equal((await session.call("get_account", { id: "ax1" })).result.kind, "value");
      assert.equal(await session.stop("turn_limit"), true);
      assert.equal(session.ended, true);
      assert.equal(await session.report("turn_limit"), false);
      assert.equal(await session.stop("turn_limit"), false);
    });

    test("an answer may bring the next turn, and its tools", async (t) => {
      const session = await seat(t, { furtherTurns: [{ instruction: "And now?", tools: ["close_account"] }] });
      assert.deepEqual(session.task.tools.map((tool) => tool.name), TOOLS.slice(0, 3));
      await session.call("get_account", { id: "ax1" });
      assert.equal(await session.submit("done"), true);
      assert.equal(session.ended, false);
      assert.equal(session.task.instruction, "And now?");
      assert.equal(session.task.turn, 2);
      assert.deepEqual(session.task.tools.map((tool) => tool.name), TOOLS);
      assert.equal(await session.submit("done again"), true);
      assert.equal(session.ended, true);
    });

    test("text, numbers and digits arrive as they are written", async (t) => {
      const session = await seat(t);
      const fields = { id: "n", "ψ": "\u0000 \u{1f9e4} \u2028 \"'\\", big: 2n ** 64n + 1n, float: new RawJson("1.0"), a: [-0, null, true] };
      assert.equal((await session.call("create_account", { fields })).result.kind, "value");
      const result = (await session.call("get_account", { id: "n" })).result as Value;
      const { big, float, ψ, a } = result.output["account"];
      assert.equal(ψ, fields.ψ);
      assert.deepEqual(a, [-0, null, true]);
      // Parsed, an integer beyond 2^53 is the nearest number there is, and 1.0 is 1.
      assert.equal(big, Number(2n ** 64n));
      assert.equal(float, 1);
      assert.match(result.json, /18446744073709551617.*1\.0/);
      const exact = (parseExact(result.json) as JsonObject)["account"];
      assert.deepEqual([exact.big, exact.float], [new RawJson("18446744073709551617"), new RawJson("1.0")]);
    });

    test("a call under the same name is carried out once, and another one may not have it", async (t) => {
      const session = await seat(t, { budget: { calls: 9 } });
      const close = () => session.call("close_account", { id: "ax1" }, { callId: "once" });
      const [first, second] = [await close(), await close()];
      assert.deepEqual(second, first);
      assert.deepEqual(second.remaining, { calls: 8 });
      await assert.rejects(session.call("get_account", { id: "ax1" }, { callId: "once" }), { kind: "call_id_reused" });
    });

    test("what the wall refuses costs nothing, and the work goes on", async (t) => {
      const session = await seat(t, { budget: { calls: 5 } });
      await assert.rejects(session.call("get_account", new RawJson("[1]")), { kind: "malformed" });
      await assert.rejects(session.call("get_account", new RawJson('{"id": NaN}')), { kind: "malformed" });
      let deep: unknown = 1;
      for (let level = 0; level < 500; level++) deep = [deep];
      await assert.rejects(session.call("get_account", { deep }), (error: Refused) => {
        assert.equal(error.kind, "too_deep");
        assert.ok(error.limit > 0 && error.actual > error.limit);
        return true;
      });
      for (const megabytes of [2, 40]) {
        await assert.rejects(session.call("get_account", { id: "x".repeat(megabytes << 20) }), (error: Refused) => {
          assert.equal(error.kind, "too_large");
          assert.ok(error.limit > 0 && error.actual > megabytes << 20);
          return true;
        });
      }
      assert.deepEqual((await session.call("get_account", { id: "ax1" })).remaining, { calls: 4 });
    });

    test("what cannot be written down is not sent", async (t) => {
      const session = await seat(t, { budget: { calls: 5 } });
      const circle: JsonObject = {};
      circle["self"] = circle;
      for (const x of [NaN, -Infinity, "\ud800", circle, () => 1, Symbol("x"), [undefined]]) {
        await assert.rejects(session.call("get_account", { x }), (error: Refused) => error.kind === "malformed");
      }
      await assert.rejects(session.submit("\udfff"), { kind: "malformed" });
      assert.equal(session.ended, false);
      assert.deepEqual((await session.call("get_account", { id: "ax1" })).remaining, { calls: 4 });
    });

    test("calls that overlap get their own answers", async (t) => {
      const session = await seat(t, { budget: { calls: 200 } });
      // A server accepts 16 concurrent unary calls per seat; a stream is one call.
      const length = stream ? 100 : 12;
      const ids = Array.from({ length }, (_, number) => `n${number}`);
      await Promise.all(ids.map((id) => session.call("create_account", { fields: { id } })));
      const replies = await Promise.all(ids.map((id) => session.call("get_account", { id })));
      assert.deepEqual(replies.map(({ result }) => (result as Value).output["account"].id), ids);
    });
  });
}
