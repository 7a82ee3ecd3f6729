/**
 * What goes wrong around the tools, by who must mend it.
 *
 *     FumehoodError
 *     ├── Refused              you: the message was not let through; nothing happened, nothing was charged
 *     │   └── Ended            … because your work has ended
 *     ├── DeadlinePassed       you: no answer within the time you gave; the call may have been carried out
 *     ├── NotAnAction          you: what `act` returned cannot be carried out
 *     └── ServiceUnavailable   not you
 *         ├── NotReachable     nobody answers at the socket
 *         ├── ConnectionLost   somebody did, and went away; the last call may have been carried out
 *         └── ServiceFailed    the answer was not one this client understands
 *
 * The tree is closed, and nothing in it is named by the other side. What a tool says is never one of these:
 * it is a returned `Failure`.
 */

/** Anything this package throws on purpose. */
export class FumehoodError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/**
 * Why a message was not let through.
 *
 * - `malformed`: the arguments are not one JSON object, or hold NaN, Infinity or half a surrogate pair
 * - `too_large`: longer than the limit, in bytes
 * - `too_deep`: nested deeper than the limit, in levels
 * - `ended`: the work has ended
 * - `call_id_reused`: another call went by this name before
 * - `too_many_refusals`: more messages were refused already than the limit, a count
 */
export type RefusalKind =
  | "malformed"
  | "too_large"
  | "too_deep"
  | "ended"
  | "call_id_reused"
  | "too_many_refusals";

/** The message was not let through: no tool saw it and nothing was charged. */
export class Refused extends FumehoodError {
  /**
   * @param kind - why.
   * @param limit - what would have been let through, in the unit of the kind; 0 where it has none.
   * @param actual - what was sent, in the same unit.
   * @param reason - more about it, where this side knows more.
   */
  constructor(
    readonly kind: RefusalKind,
    readonly limit = 0,
    readonly actual = 0,
    reason = "",
  ) {
    const numbers = limit || actual ? `: ${actual}, at most ${limit}` : "";
    super(`refused, ${kind}${numbers}${reason && `: ${reason}`}`);
  }
}

/** The work has ended: submitted, given up, or out of budget. */
export class Ended extends Refused {
  constructor() {
    super("ended");
  }
}

/** There was no answer in time; sent again under the same `callId`, the call is carried out once. */
export class DeadlinePassed extends FumehoodError {
  constructor(
    readonly path: string,
    readonly deadlineMs: number,
  ) {
    super(`${path}: no answer within ${deadlineMs} ms`);
  }
}

/** What `act` returned is none of the things that can be carried out. */
export class NotAnAction extends FumehoodError {
  constructor(readonly returned: unknown) {
    super(`act() returned ${typeof returned}; expected tool_name and args, Answer, GiveUp or nothing`);
  }
}

/** The other side of the socket cannot be used; the agent has done nothing wrong. */
export class ServiceUnavailable extends FumehoodError {}

/** Nobody answers at the socket. */
export class NotReachable extends ServiceUnavailable {
  constructor(
    readonly path: string,
    readonly waitedMs: number,
    reason: string,
  ) {
    super(`${path}: ${reason} (waited ${waitedMs} ms)`);
  }
}

/** The connection broke; whether the last call was carried out is not known. */
export class ConnectionLost extends ServiceUnavailable {
  /**
   * @param path - of the socket.
   * @param answered - calls of this session that were answered before.
   */
  constructor(
    readonly path: string,
    readonly answered: number,
  ) {
    super(`${path}: connection lost after ${answered} answered calls`);
  }
}

/** The other side answered with something this client does not understand. */
export class ServiceFailed extends ServiceUnavailable {}
