/**
 * A seat at the other side of a socket.
 *
 * Calls go over one open stream by default, a request out and its answer in, which is the fastest that gRPC
 * gives. Without the stream each call is an exchange of its own: slower, but several at once, and a call whose
 * answer was lost is sent again under the same name, so that it is carried out once.
 */

import { type ClientUnaryCall, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

import { ConnectionLost, DeadlinePassed, Ended, NotReachable, ServiceFailed } from "./errors.js";
import * as pb from "./generated/fumehood/v1/tool.js";
import type { JsonObject, RawJson } from "./json.js";
import type { CallOptions, Reply, Seat, Task } from "./seat.js";
import { Stream } from "./stream.js";
import * as wire from "./wire.js";

export const SOCKET_VARIABLE = "FUMEHOOD_SOCKET";
export const SOCKET_PATH = "/fumehood/grpc.sock";

/** What a Unix socket address holds. */
const PATH_BYTES_MAX = 107;
const POLL_MS = 5;

const CHANNEL_OPTIONS = {
  // The other side bounds what it takes and what it sends; a limit here would only lose its words.
  "grpc.max_send_message_length": -1,
  "grpc.max_receive_message_length": -1,
  // A socket that is there but does not answer yet will do so in a moment, not in gRPC's usual second.
  "grpc.initial_reconnect_backoff_ms": 50,
  "grpc.max_reconnect_backoff_ms": 250,
  // A session is a connection of its own and inherits no other one's state.
  "grpc.use_local_subchannel_pool": 1,
};

/** How a session is made. */
export interface ConnectOptions {
  /** Of the socket; by default the environment's `FUMEHOOD_SOCKET`, else `/fumehood/grpc.sock`. */
  readonly path?: string;
  /** Send calls over one open stream rather than each on its own; true by default. */
  readonly stream?: boolean;
  /**
   * How long to wait for somebody to answer: at the start, and for the same call to be answered after its
   * connection was lost (only without the stream). 5000 by default.
   */
  readonly patienceMs?: number;
}

/**
 * Connects and fetches the task.
 *
 * @throws NotReachable - nobody answered in time.
 */
export async function connect(options: ConnectOptions = {}): Promise<Session> {
  const path = resolve(options.path || process.env[SOCKET_VARIABLE] || SOCKET_PATH);
  const patienceMs = options.patienceMs ?? 5000;
  const started = performance.now();
  const waitedMs = () => Math.round(performance.now() - started);

  if (Buffer.byteLength(path) > PATH_BYTES_MAX) {
    throw new NotReachable(path, 0, `longer than the ${PATH_BYTES_MAX} bytes of a socket address`);
  }
  while (!existsSync(path)) {
    if (waitedMs() >= patienceMs) throw new NotReachable(path, waitedMs(), "no such socket");
    await sleep(POLL_MS);
  }
  const client = new pb.ToolServiceClient(`unix:${path}`, credentials.createInsecure(), CHANNEL_OPTIONS);
  try {
    const message = await unary<pb.GetTaskResponse>((done) =>
      client.getTask({}, ready(), { deadline: Date.now() + Math.max(1, patienceMs - waitedMs()) }, done),
    );
    return new Session(client, path, wire.taskFromPb(message), options.stream ?? true, patienceMs);
  } catch (error) {
    client.close();
    if (error instanceof ServiceFailed) throw error;
    const problem = wire.errorFromRpc(error, path, 0, 0);
    throw problem instanceof ConnectionLost ? new NotReachable(path, waitedMs(), "nobody answers") : problem;
  }
}

/** A connection to one seat. Its calls may overlap; over the stream they take turns. Made by `connect()`. */
export class Session implements Seat {
  #ended = false;
  #closed = false;
  #answered = 0;
  #callNumber = 0;
  #stream: Stream | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #pending = new Set<ClientUnaryCall>();
  /** Random, because an agent may open several sessions. */
  readonly #name = randomBytes(8).toString("hex");

  /** @internal */
  constructor(
    private readonly client: pb.ToolServiceClient,
    readonly path: string,
    private current: Task,
    private readonly streams: boolean,
    private readonly patienceMs: number,
  ) {}

  get task(): Task {
    return this.current;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Calls a tool.
   *
   * @param name - one of the task's tools; any other is answered with a failure.
   * @param args - values that JSON can hold, by name. A `bigint` is written with all its digits.
   * @returns what the tool said, be it a value or a failure.
   * @throws Refused - the call was not let through; nothing happened and nothing was charged.
   * @throws Ended - the work had ended before.
   * @throws DeadlinePassed - there was no answer in time.
   * @throws ServiceUnavailable - the connection broke, or the answer makes no sense.
   */
  async call(name: string, args: JsonObject | RawJson = {}, options: CallOptions = {}): Promise<Reply> {
    const { callId, deadlineMs } = options;
    const call = wire.callToPb(name, args, callId ?? (this.streams ? "" : `${this.#name}.${++this.#callNumber}`));
    if (deadlineMs !== undefined) return this.#reply(await this.#sendWithin(call, deadlineMs));
    if (!this.streams) return this.#reply(await this.#send(call));
    return this.#reply(await this.#exchange({ $case: "call", value: call }));
  }

  submit(answer = ""): Promise<boolean> {
    return this.#submit(() => wire.answerToPb(answer));
  }

  giveUp(reason: string): Promise<boolean> {
    return this.#submit(() => wire.giveUpToPb(reason));
  }

  /** Hangs up. Closing twice is closing once. A session whose work has ended keeps no program alive. */
  close(): void {
    this.#closed = true;
    this.#dropStream();
    for (const call of this.#pending) call.cancel();
    this.client.close();
  }

  async #submit(write: () => pb.SubmitRequest): Promise<boolean> {
    const request = write();
    const response = this.#stream
      ? await this.#exchange({ $case: "submit", value: request })
      : await unary<pb.SubmitResponse>((done) => this.client.submit(request, done), this.#pending).catch((error) => {
          throw this.#error(error, pb.SubmitRequest.encode(request).finish().length);
        });
    if (response.refusal) throw wire.refusalFromPb(response.refusal);
    if (response.next) this.current = wire.taskFromPb(response.next);
    else this.#end();
    return response.accepted;
  }

  async #sendWithin(call: pb.CallToolRequest, deadlineMs: number): Promise<pb.CallToolResponse> {
    // An exchange of its own: on the open stream a late answer would be taken for the next one's.
    try {
      return await this.#callTool(call, new Metadata(), Date.now() + deadlineMs);
    } catch (error) {
      throw wire.isLate(error) ? new DeadlinePassed(this.path, deadlineMs) : this.#callError(error, call);
    }
  }

  /** Sends a call; where its answer is lost, again under the same name until it is answered. */
  async #send(call: pb.CallToolRequest): Promise<pb.CallToolResponse> {
    let patientUntil: number | undefined;
    for (;;) {
      try {
        return await this.#callTool(call, patientUntil ? ready() : new Metadata(), patientUntil ?? Infinity);
      } catch (error) {
        const problem = this.#callError(error, call);
        patientUntil ??= Date.now() + this.patienceMs;
        const isOver = this.#closed || Date.now() >= patientUntil;
        if (!(problem instanceof ConnectionLost) || isOver) throw problem;
        await sleep(POLL_MS);
      }
    }
  }

  #callTool(call: pb.CallToolRequest, metadata: Metadata, deadline: number): Promise<pb.CallToolResponse> {
    return unary((done) => this.client.callTool(call, metadata, { deadline }, done), this.#pending);
  }

  async #exchange<Request extends NonNullable<pb.InteractRequest["request"]>>(
    request: Request,
  ): Promise<Answer<Request["$case"]>> {
    const response = await this.#inTurn(async () => {
      try {
        this.#stream ??= new Stream(this.client);
        return (await this.#stream.exchange({ request })).response;
      } catch (error) {
        // The next answer of this stream would belong to this request.
        this.#dropStream();
        throw this.#error(error, pb.InteractRequest.encode({ request }).finish().length);
      }
    });
    if (response?.$case !== request.$case) throw new ServiceFailed(`${this.path}: an answer to something else`);
    return response.value as Answer<Request["$case"]>;
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  #reply(response: pb.CallToolResponse): Reply {
    try {
      const reply = wire.replyFromPb(response);
      this.#answered += 1;
      if (reply.ended) this.#end();
      return reply;
    } catch (error) {
      if (error instanceof Ended) this.#end();
      throw error;
    }
  }

  #end(): void {
    this.#ended = true;
    this.#dropStream(); // An open stream would keep a program alive that has nothing more to do.
  }

  #dropStream(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    stream?.close();
  }

  #callError(error: unknown, call: pb.CallToolRequest): Error {
    return this.#error(error, pb.CallToolRequest.encode(call).finish().length);
  }

  #error(error: unknown, sentBytes: number): Error {
    return wire.errorFromRpc(error, this.path, this.#answered, sentBytes);
  }
}

/** What answers a request of this kind. */
type Answer<Case extends string> = Extract<
  NonNullable<pb.InteractResponse["response"]>,
  { $case: Case }
>["value"];

/** Returns the answer to a call, which is among the pending ones until then. */
function unary<Response>(
  start: (done: (error: ServiceError | null, response: Response) => void) => ClientUnaryCall,
  pending = new Set<ClientUnaryCall>(),
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const call = start((error, response) => {
      pending.delete(call);
      if (error) reject(error);
      else resolve(response);
    });
    pending.add(call);
  });
}

/** Waits for a connection, where a call would fail at once for want of one. */
function ready(): Metadata {
  return new Metadata({ waitForReady: true });
}
