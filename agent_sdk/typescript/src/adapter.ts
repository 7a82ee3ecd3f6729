/**
 * Runs an object with `reset()` and `act(observation)` at a seat.
 *
 * The loop is the whole contract: ask the agent; carry out what it says; stop when it is done, gives up, or
 * the reply says that the work has ended. The agent is never asked after that.
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

/** Returned by `act`: what was asked is done, and this is what came of it. */
export class Answer {
  constructor(readonly text: string) {}
}

/** Returned by `act`: the work cannot or must not be done. */
export class GiveUp {
  constructor(readonly reason: string) {}
}

/** What `work()` runs; both methods may take their time. */
export interface Agent {
  /** Forget everything; called once before the first turn. */
  reset(): void | Promise<void>;

  /**
   * Returns the next move; nothing when what was asked is done. Asked again after an answer, the agent finds
   * the user's next message in the observation.
   */
  act(observation: Observation): Move | Promise<Move>;
}

/** What an agent may do next. */
export type Move = Action | Answer | GiveUp | null | undefined | void;

/** How `work()` came to its end; `ended` when the other side ended the work. */
export type Ending = "submitted" | "gave_up" | "ended";

/**
 * Lets an agent work at a seat until it stops or its work is ended.
 *
 * @throws NotAnAction - the agent returned something that cannot be carried out.
 * @throws Refused - the agent made a call that was not let through.
 */
export async function work(agent: Agent, seat: Seat): Promise<Ending> {
  const transcript = new Transcript(seat.task);
  await agent.reset();
  for (;;) {
    const move = await agent.act(transcript.observation());
    if (move instanceof GiveUp) {
      await seat.giveUp(move.reason);
      return "gave_up";
    }
    if (move === null || move === undefined || move instanceof Answer) {
      const text = move?.text ?? "";
      const task = seat.task;
      await seat.submit(text);
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
