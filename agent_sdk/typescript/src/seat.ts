/**
 * What an agent sees and does at its seat, as plain data.
 *
 * Knows nothing about sockets: a `Seat` is a `Session` or anything else that answers the same way, such as
 * tools held in memory.
 */

import type { JsonObject, RawJson } from "./json.js";

/** A tool on offer. */
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

/** What is asked. */
export interface Task {
  /** The user's last message. */
  readonly instruction: string;
  /** Those that are there now. */
  readonly tools: readonly Tool[];
  /** At the start; each reply says what is left after it. */
  readonly remaining: Remaining;
  /** Which message of the user the instruction is, from 1. */
  readonly turn: number;
}

/** The tool's output. */
export interface Value {
  readonly kind: "value";
  /** Parsed, so that an integer beyond 2^53 is rounded. */
  readonly output: JsonObject;
  /** The same as it arrived, every digit of it. */
  readonly json: string;
}

/** The tool said no: a reply to read and react to, never an exception. */
export interface Failure {
  readonly kind: "failure";
  /** For programs, such as `"not_found"`. */
  readonly code: string;
  /** The same for people. */
  readonly message: string;
  readonly details: JsonObject;
  /** The details as they arrived. */
  readonly json: string;
}

/** The answer to one call. */
export interface Reply {
  readonly result: Value | Failure;
  readonly remaining: Remaining;
  /** True when no further call will be carried out. */
  readonly ended: boolean;
  /** The arguments as they were recorded, where that is not what was sent. */
  readonly recordedArguments?: JsonObject;
}

/** How one call is made. */
export interface CallOptions {
  /** A name for this very call, at most 64 bytes: sent again under it, the call is carried out once. */
  readonly callId?: string;
  /** How long to wait for the answer; by default until it is there. */
  readonly deadlineMs?: number;
}

/** A place to work from. */
export interface Seat {
  /** What is asked; another task after an answer upon which the user said more. */
  readonly task: Task;
  /** True once no further call will be carried out. */
  readonly ended: boolean;

  /**
   * Calls a tool.
   *
   * @throws Refused - the call was not let through; nothing happened and nothing was charged.
   * @throws Ended - the work had ended before.
   */
  call(name: string, args?: JsonObject | RawJson, options?: CallOptions): Promise<Reply>;

  /**
   * Answers the user, any text, and tells whether it counted.
   *
   * Where the user has more to say, there is another `task` then; else the work has ended.
   */
  submit(answer?: string): Promise<boolean>;

  /** Ends the work because it cannot or must not be done, and tells whether it counted. */
  giveUp(reason: string): Promise<boolean>;
}
