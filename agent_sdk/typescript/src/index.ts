/**
 * What an agent needs to work through a fumehood.
 *
 * A `Session` is the whole of it: the task, its tools, calls, and the end of the work. `work()` runs an object
 * with `reset()` and `act(observation)` in one.
 */

export { type Action, type Agent, Answer, type Ending, GiveUp, type Move, work } from "./adapter.js";
export {
  ConnectionLost,
  DeadlinePassed,
  Ended,
  FumehoodError,
  NotAnAction,
  NotReachable,
  type RefusalKind,
  Refused,
  ServiceFailed,
  ServiceUnavailable,
} from "./errors.js";
export { encode, type JsonObject, parseExact, RawJson } from "./json.js";
export type { EarlierTurn, Entry, Observation, Problem, RemainingBudget, ToolSchema } from "./observation.js";
export type { CallOptions, Failure, Remaining, Reply, Seat, Task, Tool, Value } from "./seat.js";
export { connect, type ConnectOptions, type Session } from "./session.js";
