/** The loop around an object with `reset()` and `act()`, at a seat in memory. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Agent, Answer, Ended, GiveUp, type JsonObject, NotAnAction, type Observation, type Reply, type Seat, type Task, work } from "../src/index.js";

const TASK: Task = {
  instruction: "Count.",
  tools: [{ name: "count", description: "", parameters: { type: "object", properties: { to: { type: "integer" } }, required: ["to"] } }],
  remaining: { steps: 3, calls: 2 },
  turn: 1,
};

class MemorySeat implements Seat {
  readonly said: unknown[] = [];
  ended = false;
  task = TASK;

  constructor(
    private readonly replies: (Partial<Reply> | Error)[] = [],
    private readonly further: Task[] = [],
  ) {}

  async call(name: string, args: JsonObject = {}): Promise<Reply> {
    this.said.push({ call: name, args });
    const reply = this.replies.shift();
    if (reply instanceof Error) throw reply;
    return { result: { kind: "value", output: { counted: args["to"] }, json: "" }, remaining: {}, ended: false, ...reply };
  }

  async submit(answer = ""): Promise<boolean> {
    this.said.push({ submit: answer });
    this.task = this.further.shift() ?? this.task;
    return true;
  }

  async giveUp(reason: string): Promise<boolean> {
    this.said.push({ giveUp: reason });
    return true;
  }
}

function agent(...moves: unknown[]): Agent & { seen: Observation[] } {
  const seen: Observation[] = [];
  return {
    seen,
    reset: () => undefined,
    act: (observation) => {
      seen.push(observation);
      return moves.shift() as never;
    },
  };
}

const count = (to: number) => ({ tool_name: "count", args: { to } });

test("an agent calls, sees what came of it, and is done", async () => {
  const failure = { kind: "failure", code: "odd", message: "Odd.", details: { by: 1 }, json: "" } as const;
  const seat = new MemorySeat([{ remaining: { calls: 1 } }, { result: failure, recordedArguments: { to: "2" } }]);
  const it = agent(count(1), count(2), undefined);
  assert.equal(await work(it, seat), "submitted");
  assert.deepEqual(seat.said, [{ call: "count", args: { to: 1 } }, { call: "count", args: { to: 2 } }, { submit: "" }]);
  const problem = { code: "odd", message: "Odd.", details: { by: 1 } };
  assert.deepEqual(it.seen[0], {
    instruction: "Count.",
    tool_schemas: [{ name: "count", properties: { to: { type: "integer" } }, required: ["to"], additionalProperties: true }],
    transcript: [],
    remaining_budget: { steps_left: 3, tool_calls_left: 2 },
    last_error: null,
  });
  assert.deepEqual(it.seen[1]?.remaining_budget, { tool_calls_left: 1 });
  assert.deepEqual(it.seen[2]?.transcript, [
    { tool_name: "count", args: { to: 1 }, output: { counted: 1 }, error: null },
    { tool_name: "count", args: { to: "2" }, output: null, error: problem },
  ]);
  assert.deepEqual(it.seen[2]?.last_error, problem);
});

test("an answer upon which the user says more is a turn", async () => {
  const seat = new MemorySeat([], [{ ...TASK, instruction: "And back.", turn: 2 }]);
  const it = agent(new Answer("there"), count(0), new Answer("back"));
  assert.equal(await work(it, seat), "submitted");
  assert.equal(it.seen[1]?.instruction, "And back.");
  assert.deepEqual(it.seen[1]?.earlier_turns, [{ instruction: "Count.", answer: "there" }]);
});

test("an agent may give up", async () => {
  const seat = new MemorySeat();
  assert.equal(await work(agent(new GiveUp("no")), seat), "gave_up");
  assert.deepEqual(seat.said, [{ giveUp: "no" }]);
});

test("an agent is not called after the end", async () => {
  const it = agent(count(1), count(2));
  assert.equal(await work(it, new MemorySeat([{ ended: true }])), "ended");
  assert.equal(it.seen.length, 1);
  assert.equal(await work(agent(count(1)), new MemorySeat([new Ended()])), "ended");
});

test("what is no move is named as such", async () => {
  for (const move of ["count", { name: "count" }, { tool_name: "count", args: 1 }]) {
    await assert.rejects(work(agent(move), new MemorySeat()), NotAnAction);
  }
});
