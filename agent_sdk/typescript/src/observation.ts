/** The observation of a `reset`/`act` agent: one JSON document, the same in every language. */

import type { JsonObject } from "./json.js";
import type { Failure, Remaining, Reply, Task, Tool, Value } from "./seat.js";

/** A tool with the parts of its JSON Schema that describe its arguments. */
export interface ToolSchema {
  name: string;
  /** Argument → its schema, in the tool's order. */
  properties: JsonObject;
  required: string[];
  additionalProperties: boolean;
  /** Missing if the tool has none. */
  description?: string;
}

/** Why a call failed. */
export interface Problem {
  code: string;
  message: string;
  details: JsonObject;
}

/** One call and its result; exactly one of `output` and `error` is not null. */
export interface Entry {
  tool_name: string;
  /** The recorded arguments: those that were sent, unless the reply contains others. */
  args: JsonObject;
  output: JsonObject | null;
  error: Problem | null;
}

/**
 * Units left, such as `{ steps_left: 6, tool_calls_left: 4 }`. A missing key means no limit.
 *
 * Wall time is left out, because it differs between two runs of the same agent.
 */
export type RemainingBudget = Record<string, number>;

/** An earlier message of the user, with its answer. */
export interface EarlierTurn {
  instruction: string;
  answer: string;
}

/** All that an agent knows when it acts. */
export interface Observation {
  /** The last message of the user. */
  instruction: string;
  /** Oldest first; missing if there are none. */
  earlier_turns?: EarlierTurn[];
  tool_schemas: ToolSchema[];
  /** Every call so far, oldest first. */
  transcript: Entry[];
  remaining_budget: RemainingBudget;
  /** Error of the last call; null if it succeeded or there was none. */
  last_error: Problem | null;
}

/** Collects calls and answers, and creates observations from them. */
export class Transcript {
  readonly #entries: Entry[] = [];
  readonly #earlier: EarlierTurn[] = [];
  #problem: Problem | null = null;
  #remaining: Remaining;

  constructor(private task: Task) {
    this.#remaining = task.remaining;
  }

  /** Adds an answer and the task that follows it. */
  beginTurn(answer: string, task: Task): void {
    this.#earlier.push({ instruction: this.task.instruction, answer });
    this.task = task;
    this.#remaining = task.remaining;
  }

  /** Adds one call and its reply. */
  record(name: string, args: JsonObject, reply: Reply): void {
    const { output, error } = split(reply.result);
    this.#problem = error;
    this.#remaining = reply.remaining;
    this.#entries.push({ tool_name: name, args: reply.recordedArguments ?? { ...args }, output, error });
  }

  /**
   * Returns the current observation.
   *
   * Each observation has a new list of entries, so that an agent may keep it; the entries are shared.
   */
  observation(): Observation {
    return {
      instruction: this.task.instruction,
      ...(this.#earlier.length > 0 && { earlier_turns: [...this.#earlier] }),
      tool_schemas: this.task.tools.map(toolSchema),
      transcript: [...this.#entries],
      remaining_budget: budget(this.#remaining),
      last_error: this.#problem,
    };
  }
}

function toolSchema({ name, parameters, description }: Tool): ToolSchema {
  const { properties = {}, required = [], additionalProperties = true } = parameters;
  return { name, properties, required, additionalProperties, ...(description && { description }) };
}

function split(result: Value | Failure): Pick<Entry, "output" | "error"> {
  if (result.kind === "value") return { output: result.output, error: null };
  const { code, message, details } = result;
  return { output: null, error: { code, message, details } };
}

function budget(remaining: Remaining): RemainingBudget {
  const counted = Object.entries(remaining).filter(([kind]) => kind !== "wall_ms");
  // Existing reset/act agents read the kind "calls" by this name.
  return Object.fromEntries(counted.map(([kind, units]) => [`${kind === "calls" ? "tool_calls" : kind}_left`, units]));
}
