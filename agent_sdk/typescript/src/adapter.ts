/**
 * Runs an object with `reset()` and `act(observation)` at a seat.
 *
 * The loop asks the agent for an action and executes it, until the agent submits its last answer, gives up, or a
 * reply states that the work has ended.
 */

import { Ended, NotAnAction } from "./errors.js";
import type { JsonObject } from "./json.js";
import { type Observation, Transcript } from "./observation.js";
import type { Reply, Seat } from "./seat.js";

/** A call to make. */
export interface Action {
  tool_name: string;
  args?: JsonObject;
}

/** Returned by `act`: the agent has finished, and this is its answer. */
export class Answer {
  /** `confidence`: probability that the task is done correctly, 0 to 1. */
  constructor(
    readonly text: string,
    readonly confidence?: number,
  ) {}
}

/** Returned by `act`: the task cannot or must not be done. */
export class GiveUp {
  /** `confidence`: probability that giving up is right, 0 to 1. */
  constructor(
    readonly reason: string,
    readonly confidence?: number,
  ) {}
}

/** An agent for `work()`; both methods may be asynchronous. */
export interface Agent {
  /** Resets the state of the agent; called once, before the first turn. */
  reset(): void | Promise<void>;

  /**
   * Returns the next action; nothing when the agent has finished. If the user replies to an answer, the next
   * observation contains the message.
   */
  act(observation: Observation): Move | Promise<Move>;
}

/** The next action of an agent. */
export type Move = Action | Answer | GiveUp | null | undefined | void;

/** How `work()` ended; `ended` if the service ended the work. */
export type Ending = "submitted" | "gave_up" | "ended";

/**
 * Runs an agent at a seat until it stops or its work ends.
 *
 * @throws NotAnAction - the agent returned something that is not an action.
 * @throws Refused - the service refused a call of the agent.
 */
export async function work(agent: Agent, seat: Seat): Promise<Ending> {
  const transcript = new Transcript(seat.task);
  await agent.reset();
  for (;;) {
    const move = await agent.act(transcript.observation());
    if (move instanceof GiveUp) {
      await seat.giveUp(move.reason, move.confidence);
      return "gave_up";
    }
    if (move === null || move === undefined || move instanceof Answer) {
      const text = move?.text ?? "";
      const task = seat.task;
      await seat.submit(text, move?.confidence);
      if (seat.task === task) return "submitted";
      transcript.beginTurn(text, seat.task);
      continue;
    }
    const { tool_name: name, args } = requireAction(move);
    const reply = await callUnlessEnded(seat, name, args);
    if (reply === undefined || reply.ended) return "ended";
    transcript.record(name, args, reply);
  }
}

function requireAction(move: Action): Required<Action> {
  const { tool_name, args = {} } = Object(move) as Partial<Action>;
  if (typeof tool_name !== "string" || typeof args !== "object" || args === null) throw new NotAnAction(move);
  return { tool_name, args };
}

async function callUnlessEnded(seat: Seat, name: string, args: JsonObject): Promise<Reply | undefined> {
  try {
    return await seat.call(name, args);
  } catch (error) {
    if (error instanceof Ended) return undefined;
    throw error;
  }
}
