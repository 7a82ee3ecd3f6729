/**
 * A session with a seat over its socket.
 *
 * By default all calls use one open stream and take turns on it. Without the stream each call is a separate RPC.
 * That is slower, but calls can run in parallel, and a call whose response was lost is sent again with the same
 * `callId`, so that it is executed once.
 */

import { type ClientUnaryCall, connectivityState, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

import { ConnectionLost, DeadlinePassed, Ended, NotReachable, ServiceFailed } from "./errors.js";
import * as pb from "./generated/fumehood/v1/tool.js";
import type { JsonObject, RawJson } from "./json.js";
import type { CallOptions, ModelProblem, ModelSeat, Reply, Task } from "./seat.js";
import { Stream } from "./stream.js";
import * as wire from "./wire.js";

export const SOCKET_VARIABLE = "FUMEHOOD_SOCKET";
export const SOCKET_PATH = "/fumehood/grpc.sock";

/** Longest path in a Unix socket address. */
const PATH_BYTES_MAX = 107;
const POLL_MS = 5;

const CHANNEL_OPTIONS = {
  // The service limits both directions; a limit here would only hide its messages.
  "grpc.max_send_message_length": -1,
  "grpc.max_receive_message_length": -1,
  // A service that is starting answers within milliseconds; gRPC's default is one second.
  "grpc.initial_reconnect_backoff_ms": 50,
  "grpc.max_reconnect_backoff_ms": 250,
  // Each session has a separate connection, without the state of another.
  "grpc.use_local_subchannel_pool": 1,
};

/** Options of a session. */
export interface ConnectOptions {
  /** Path of the socket; by default the environment variable `FUMEHOOD_SOCKET`, else `/fumehood/grpc.sock`. */
  readonly path?: string;
  /** Send calls over one open stream rather than as separate RPCs; true by default. */
  readonly stream?: boolean;
  /**
   * How long to wait for the service at the start, and for the response to a call after the connection was lost
   * (only without the stream). 30000 by default. A service that is connected may send the task later, when the
   * work begins.
   */
  readonly serviceTimeoutMs?: number;
}

/**
 * Connects and fetches the task.
 *
 * @throws NotReachable - no service answered in time.
 */
export async function connect(options: ConnectOptions = {}): Promise<Session> {
  const path = resolve(options.path || process.env[SOCKET_VARIABLE] || SOCKET_PATH);
  const serviceTimeoutMs = options.serviceTimeoutMs ?? 30000;
  const started = performance.now();
  const waitedMs = () => Math.round(performance.now() - started);

  if (Buffer.byteLength(path) > PATH_BYTES_MAX) {
    throw new NotReachable(path, 0, `longer than the ${PATH_BYTES_MAX} bytes of a socket address`);
  }
  while (!existsSync(path)) {
    if (waitedMs() >= serviceTimeoutMs) throw new NotReachable(path, waitedMs(), "no such socket");
    await sleep(POLL_MS);
  }
  const client = new pb.ToolServiceClient(`unix:${path}`, credentials.createInsecure(), CHANNEL_OPTIONS);
  try {
    const message = await requestTask(client, Date.now() + Math.max(1, serviceTimeoutMs - waitedMs()));
    return new Session(client, path, wire.taskFromPb(message), options.stream ?? true, serviceTimeoutMs);
  } catch (error) {
    client.close();
    if (error instanceof ServiceFailed) throw error;
    const problem = wire.errorFromRpc(error, path, 0, 0);
    throw problem instanceof ConnectionLost ? new NotReachable(path, waitedMs(), "no service answers") : problem;
  }
}

/** Returns the task; a service that is not connected at the deadline is an error. */
async function requestTask(client: pb.ToolServiceClient, deadline: number): Promise<pb.GetTaskResponse> {
  try {
    return await unary<pb.GetTaskResponse>((done) => client.getTask({}, ready(), { deadline }, done));
  } catch (error) {
    const isConnected = client.getChannel().getConnectivityState(false) === connectivityState.READY;
    if (!wire.isLate(error) || !isConnected) throw error;
  }
  return unary<pb.GetTaskResponse>((done) => client.getTask({}, done));
}

/** A connection to one seat, created by `connect()`. Parallel calls take turns on the stream. */
export class Session implements ModelSeat {
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
    private readonly serviceTimeoutMs: number,
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
   * @param name - of a tool of the task; any other name gets a failure.
   * @param args - JSON values by name. A `bigint` is written with all its digits.
   * @returns the reply, with a value or a failure of the tool.
   * @throws Refused - the service refused the call; nothing was executed or charged.
   * @throws Ended - the work had ended before.
   * @throws DeadlinePassed - no reply arrived in time.
   * @throws ServiceUnavailable - the connection broke, or the response is malformed.
   */
  async call(name: string, args: JsonObject | RawJson = {}, options: CallOptions = {}): Promise<Reply> {
    const { callId, deadlineMs } = options;
    const call = wire.callToPb(name, args, callId ?? (this.streams ? "" : `${this.#name}.${++this.#callNumber}`));
    if (deadlineMs !== undefined) return this.#reply(await this.#sendWithin(call, deadlineMs));
    if (!this.streams) return this.#reply(await this.#send(call));
    return this.#reply(await this.#exchange({ $case: "call", value: call }));
  }

  submit(answer = "", confidence?: number): Promise<boolean> {
    return this.#submit(() => wire.answerToPb(answer, confidence));
  }

  giveUp(reason: string, confidence?: number): Promise<boolean> {
    return this.#submit(() => wire.giveUpToPb(reason, confidence));
  }

  stop(problem: ModelProblem): Promise<boolean> {
    return this.#submit(() => wire.stopToPb(problem));
  }

  async report(problem: ModelProblem): Promise<boolean> {
    if (this.#ended) return false;
    const request = wire.reportToPb(problem);
    if (this.streams) return (await this.#exchange({ $case: "report", value: request })).recorded;
    const response = await unary<pb.ReportResponse>((done) => this.client.report(request, done), this.#pending).catch(
      (error) => {
        throw this.#error(error, pb.ReportRequest.encode(request).finish().length);
      },
    );
    return response.recorded;
  }

  /** Closes the connection; does nothing the second time. A session whose work has ended keeps no program alive. */
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
    // A separate RPC: on the open stream a late response would be taken for the next one.
    try {
      return await this.#callTool(call, new Metadata(), Date.now() + deadlineMs);
    } catch (error) {
      throw wire.isLate(error) ? new DeadlinePassed(this.path, deadlineMs) : this.#callError(error, call);
    }
  }

  /** Sends a call; repeats it with the same `callId` if the response was lost. */
  async #send(call: pb.CallToolRequest): Promise<pb.CallToolResponse> {
    let retryUntil: number | undefined;
    for (;;) {
      try {
        return await this.#callTool(call, retryUntil ? ready() : new Metadata(), retryUntil ?? Infinity);
      } catch (error) {
        const problem = this.#callError(error, call);
        retryUntil ??= Date.now() + this.serviceTimeoutMs;
        const isOver = this.#closed || Date.now() >= retryUntil;
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
        // The next response of this stream would belong to this request.
        this.#dropStream();
        throw this.#error(error, pb.InteractRequest.encode({ request }).finish().length);
      }
    });
    if (response?.$case !== request.$case) throw new ServiceFailed(`${this.path}: the response does not match the request`);
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
    this.#dropStream(); // An open stream would keep the program alive.
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

/** The response to a request of this kind. */
type Answer<Case extends string> = Extract<
  NonNullable<pb.InteractResponse["response"]>,
  { $case: Case }
>["value"];

/** Returns the response to an RPC, which is in `pending` until then. */
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

/** Metadata with which an RPC waits for a connection instead of failing at once. */
function ready(): Metadata {
  return new Metadata({ waitForReady: true });
}
