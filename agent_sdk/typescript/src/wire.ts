/**
 * Converts between protobuf messages and the types of this package. No other module handles gRPC statuses.
 *
 * Arguments and outputs are sent as JSON text, which distinguishes `1` from `1.0` and keeps large integers.
 */

import { status } from "@grpc/grpc-js";

import { ConnectionLost, Ended, type FumehoodError, Refused, type RefusalKind, ServiceFailed } from "./errors.js";
import * as pb from "./generated/fumehood/v1/tool.js";
import { encode, type JsonObject, RawJson, wellFormed } from "./json.js";
import type { Failure, ModelProblem, Remaining, Reply, Task, Value } from "./seat.js";

const LOST = new Set<unknown>([status.UNAVAILABLE, status.CANCELLED, status.DEADLINE_EXCEEDED]);

const REFUSAL_KINDS = new Map<pb.RefusalKind, RefusalKind>([
  [pb.RefusalKind.REFUSAL_KIND_MALFORMED, "malformed"],
  [pb.RefusalKind.REFUSAL_KIND_TOO_LARGE, "too_large"],
  [pb.RefusalKind.REFUSAL_KIND_TOO_DEEP, "too_deep"],
  [pb.RefusalKind.REFUSAL_KIND_ENDED, "ended"],
  [pb.RefusalKind.REFUSAL_KIND_CALL_ID_REUSED, "call_id_reused"],
  [pb.RefusalKind.REFUSAL_KIND_TOO_MANY_REFUSALS, "too_many_refusals"],
]);

/**
 * Returns the message for one call.
 *
 * @throws Refused - the name is not valid Unicode, or the arguments have no JSON form.
 */
export function callToPb(name: string, args: JsonObject | RawJson, callId: string): pb.CallToolRequest {
  return written(() => ({
    toolName: wellFormed(name),
    argumentsJson: wellFormed(encode(args)),
    callId: wellFormed(callId),
  }));
}

/**
 * Returns the message that submits an answer.
 *
 * @throws Refused - the text is not valid Unicode.
 */
export function answerToPb(text: string, confidence?: number): pb.SubmitRequest {
  return written(() => ({ end: { $case: "answer", value: wellFormed(text) }, confidence }));
}

/**
 * Returns the message that gives up.
 *
 * @throws Refused - the text is not valid Unicode.
 */
export function giveUpToPb(reason: string, confidence?: number): pb.SubmitRequest {
  return written(() => ({ end: { $case: "giveUpReason", value: wellFormed(reason) }, confidence }));
}

const PROBLEMS: Readonly<Record<ModelProblem, pb.ModelProblem>> = {
  reply_truncated: pb.ModelProblem.MODEL_PROBLEM_REPLY_TRUNCATED,
  reply_unparseable: pb.ModelProblem.MODEL_PROBLEM_REPLY_UNPARSEABLE,
  arguments_unparseable: pb.ModelProblem.MODEL_PROBLEM_ARGUMENTS_UNPARSEABLE,
  context_overflow: pb.ModelProblem.MODEL_PROBLEM_CONTEXT_OVERFLOW,
  turn_limit: pb.ModelProblem.MODEL_PROBLEM_TURN_LIMIT,
  request_refused: pb.ModelProblem.MODEL_PROBLEM_REQUEST_REFUSED,
};

/** Returns the message that ends the work because of a problem with the model. */
export function stopToPb(problem: ModelProblem): pb.SubmitRequest {
  return { end: { $case: "stopped", value: PROBLEMS[problem] } };
}

/** Returns the message that reports a problem with the model. */
export function reportToPb(problem: ModelProblem): pb.ReportRequest {
  return { problem: PROBLEMS[problem] };
}

/** Converts a task. */
export function taskFromPb(message: pb.GetTaskResponse): Task {
  return {
    instruction: message.instruction,
    tools: message.tools.map(({ name, description, parametersJson }) => ({
      name,
      description,
      parameters: object(parametersJson),
    })),
    remaining: sorted(message.remaining),
    turn: message.turn || 1, // A service that sends no turn number has one turn.
    asksConfidence: message.asksConfidence,
  };
}

/**
 * Converts a reply.
 *
 * @throws Ended - the work had ended.
 * @throws Refused - the service refused the call.
 * @throws ServiceFailed - the message contains no result.
 */
export function replyFromPb(message: pb.CallToolResponse): Reply {
  const recorded = message.recordedArgumentsJson;
  return {
    result: resultFromPb(message.result),
    remaining: sorted(message.remaining),
    ended: message.ended,
    ...(recorded === undefined ? {} : { recordedArguments: object(recorded) }),
  };
}

/** Returns the error for a refusal. */
export function refusalFromPb(message: pb.Refusal): Refused | ServiceFailed {
  const kind = REFUSAL_KINDS.get(message.kind);
  if (kind === undefined) return new ServiceFailed(`unknown refusal kind ${message.kind}`);
  return kind === "ended" ? new Ended() : new Refused(kind, message.limit, message.actual);
}

/** Returns whether an RPC failed because its deadline passed. */
export function isLate(error: unknown): boolean {
  return (error as { code?: status }).code === status.DEADLINE_EXCEEDED;
}

/**
 * Returns the error for a failed RPC.
 *
 * @param error - what was thrown.
 * @param path - of the socket.
 * @param answered - calls of this session that got a response before.
 * @param sentBytes - size of the message that was sent.
 */
export function errorFromRpc(error: unknown, path: string, answered: number, sentBytes: number): FumehoodError {
  const { code, details = "" } = error as { code?: status; details?: string };
  if (code === undefined || LOST.has(code)) return new ConnectionLost(path, answered);
  // gRPC rejects a message above the receiver's limit before the service can answer.
  const limit = /\(\d+ vs\. (\d+)\)/.exec(details);
  if (code === status.RESOURCE_EXHAUSTED && limit) return new Refused("too_large", Number(limit[1]), sentBytes);
  return new ServiceFailed(`${path}: ${status[code]}: ${details}`);
}

function resultFromPb(result: pb.CallToolResponse["result"]): Value | Failure {
  switch (result?.$case) {
    case "valueJson":
      return { kind: "value", output: object(result.value), json: result.value };
    case "failure": {
      const { code, message, detailsJson } = result.value;
      return { kind: "failure", code, message, details: object(detailsJson || "{}"), json: detailsJson || "{}" };
    }
    case "refusal":
      throw refusalFromPb(result.value);
    default:
      throw new ServiceFailed("the response contains no result");
  }
}

/** A map has no order on the wire; an agent must see the same order in every run. */
function sorted(units: Remaining): Remaining {
  return Object.fromEntries(Object.entries(units).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function written<Message>(write: () => Message): Message {
  try {
    return write();
  } catch (error) {
    throw new Refused("malformed", 0, 0, (error as Error).message);
  }
}

function object(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ServiceFailed(`the response contains invalid JSON: ${(error as Error).message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ServiceFailed("the response contains a JSON value that is not an object");
  }
  return value;
}
