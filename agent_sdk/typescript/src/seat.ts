/**
 * The data that an agent receives, and the interface through which it acts.
 *
 * A `Seat` is a `Session`, or anything else with the same methods, such as tools in memory.
 */

import type { JsonObject, RawJson } from "./json.js";

/** A tool that the agent may call. */
export interface Tool {
  readonly name: string;
  /** JSON Schema of the arguments; an object schema. */
  readonly parameters: JsonObject;
  readonly description: string;
}

/**
 * Units left by budget kind, such as `{ calls: 4, wall_ms: 60000 }`. A kind without a limit is missing.
 *
 * The README lists the kinds. An agent should ignore kinds that it does not know.
 */
export type Remaining = Readonly<Record<string, number>>;

/** A task. */
export interface Task {
  /** The last message of the user. */
  readonly instruction: string;
  /** The tools that are available now. */
  readonly tools: readonly Tool[];
  /** Units left when the task was fetched; each reply contains the units left after it. */
  readonly remaining: Remaining;
  /** Number of this message of the user, from 1. */
  readonly turn: number;
  /** Whether the run asks for the confidence of each submission. */
  readonly asksConfidence?: boolean;
}

/** The output of a tool. */
export interface Value {
  readonly kind: "value";
  /** Parsed; an integer beyond 2^53 is rounded. */
  readonly output: JsonObject;
  /** The original text, with all digits. */
  readonly json: string;
}

/** A failed call. The agent reads it and reacts; it is never an exception. */
export interface Failure {
  readonly kind: "failure";
  /** For programs, such as `"not_found"`. */
  readonly code: string;
  /** Explanation for a reader. */
  readonly message: string;
  readonly details: JsonObject;
  /** The original text of the details. */
  readonly json: string;
}

/** The reply to one call. */
export interface Reply {
  readonly result: Value | Failure;
  readonly remaining: Remaining;
  /** True if the work has ended, so that no further call is executed. */
  readonly ended: boolean;
  /** The arguments as recorded, if they differ from the arguments that were sent. */
  readonly recordedArguments?: JsonObject;
}

/** Options of one call. */
export interface CallOptions {
  /** Idempotency key, at most 64 bytes: a call that is sent again with the same key is executed once. */
  readonly callId?: string;
  /** How long to wait for the reply; by default without limit. */
  readonly deadlineMs?: number;
}

/** The interface through which an agent works. */
export interface Seat {
  /** The current task; another object after an answer to which the user replied. */
  readonly task: Task;
  /** True if the work has ended, so that no further call is executed. */
  readonly ended: boolean;

  /**
   * Calls a tool.
   *
   * @throws Refused - the service refused the call; nothing was executed or charged.
   * @throws Ended - the work had ended before.
   */
  call(name: string, args?: JsonObject | RawJson, options?: CallOptions): Promise<Reply>;

  /**
   * Submits an answer, any text, and returns whether it counts.
   *
   * If the user sends another message, `task` is the next task; otherwise the work has ended.
   *
   * @param confidence - probability that the task is done correctly, 0 to 1.
   */
  submit(answer?: string, confidence?: number): Promise<boolean>;

  /** Gives up, because the task cannot or must not be done, and returns whether this counts. */
  giveUp(reason: string, confidence?: number): Promise<boolean>;
}

/** What went wrong between an agent and its model. */
export type ModelProblem =
  /** The reply reached its token limit. */
  | "reply_truncated"
  /** The reply does not have the form that the API or the agent's prompt requires. */
  | "reply_unparseable"
  /** The arguments of a requested tool call are not a JSON object. */
  | "arguments_unparseable"
  /** The conversation is longer than the context of the model. */
  | "context_overflow"
  /** The agent's own limit of replies is reached. */
  | "turn_limit"
  /** The provider refused a request for another reason. */
  | "request_refused";

/** A seat whose agent reports problems with its model. */
export interface ModelSeat extends Seat {
  /** Ends the work because of a problem with the model, and returns whether this counts. */
  stop(problem: ModelProblem): Promise<boolean>;

  /** Records a problem with the model in the trace, and returns whether it was recorded; the work continues. */
  report(problem: ModelProblem): Promise<boolean>;
}
