/**
 * The errors of this package.
 *
 *     FumehoodError
 *     ├── Refused              the service refused the message; no tool received it, and nothing was charged
 *     │   └── Ended            your work has ended
 *     ├── DeadlinePassed       no response within your deadline; the call may have been executed
 *     ├── NotAnAction          `act` returned something that is not an action
 *     └── ServiceUnavailable   not caused by the agent
 *         ├── NotReachable     no service answers at the socket
 *         ├── ConnectionLost   the connection broke; the last call may have been executed
 *         └── ServiceFailed    this client does not understand the response
 *
 * The set is closed: data from the service never selects an error by name. A failure of a tool is never an error;
 * it is a returned `Failure`.
 */

/** Base class of the errors of this package. */
export class FumehoodError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/**
 * Why the service refused a message.
 *
 * - `malformed`: the arguments are not one JSON object, or contain NaN, Infinity or a lone surrogate
 * - `too_large`: the text is longer than the limit, in bytes
 * - `too_deep`: the arguments are nested deeper than the limit, in levels
 * - `ended`: the work has ended
 * - `call_id_reused`: a different call used this `callId` before
 * - `too_many_refusals`: the service refused more messages than the limit, a count
 */
export type RefusalKind =
  | "malformed"
  | "too_large"
  | "too_deep"
  | "ended"
  | "call_id_reused"
  | "too_many_refusals";

/** The service refused the message: no tool received it, and nothing was charged. */
export class Refused extends FumehoodError {
  /**
   * @param kind - why the message was refused.
   * @param limit - the limit, in the unit of the kind; 0 if the kind has none.
   * @param actual - the value that was sent, in the same unit.
   * @param reason - details, if the client knows any.
   */
  constructor(
    readonly kind: RefusalKind,
    readonly limit = 0,
    readonly actual = 0,
    reason = "",
  ) {
    const numbers = limit || actual ? `: ${actual} is more than the limit ${limit}` : "";
    super(`refused, ${kind}${numbers}${reason && `: ${reason}`}`);
  }
}

/** The work has ended: submitted, given up, out of budget or out of time. */
export class Ended extends Refused {
  constructor() {
    super("ended");
  }
}

/** No response arrived in time. If the call is sent again with the same `callId`, it is executed once. */
export class DeadlinePassed extends FumehoodError {
  constructor(
    readonly path: string,
    readonly deadlineMs: number,
  ) {
    super(`${path}: no response within ${deadlineMs} ms`);
  }
}

/** `act` returned something that is not an action. */
export class NotAnAction extends FumehoodError {
  constructor(readonly returned: unknown) {
    super(`act() returned ${typeof returned}; expected tool_name and args, Answer, GiveUp or nothing`);
  }
}

/** The service cannot be used. This is not caused by the agent. */
export class ServiceUnavailable extends FumehoodError {}

/** No service answers at the socket. */
export class NotReachable extends ServiceUnavailable {
  constructor(
    readonly path: string,
    readonly waitedMs: number,
    reason: string,
  ) {
    super(`${path}: ${reason} (waited ${waitedMs} ms)`);
  }
}

/** The connection broke; it is unknown whether the last call was executed. */
export class ConnectionLost extends ServiceUnavailable {
  /**
   * @param path - of the socket.
   * @param answered - calls of this session that got a response before.
   */
  constructor(
    readonly path: string,
    readonly answered: number,
  ) {
    super(`${path}: connection lost after ${answered} answered calls`);
  }
}

/** This client does not understand the response of the service. */
export class ServiceFailed extends ServiceUnavailable {}
