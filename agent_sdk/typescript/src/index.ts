/**
 * The agent SDK of Fumehood.
 *
 * A `Session` gives an agent its task and its tools, and ends its work. `work()` runs an object with `reset()` and
 * `act(observation)`.
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
export type { CallOptions, Failure, ModelProblem, ModelSeat, Remaining, Reply, Seat, Task, Tool, Value } from "./seat.js";
export { connect, type ConnectOptions, type Session } from "./session.js";
