/** One open stream: each request gets its response before the next request is sent. */

import type { ClientDuplexStream } from "@grpc/grpc-js";

import type {
  InteractRequest,
  InteractResponse,
  ToolServiceClient,
} from "./generated/fumehood/v1/tool.js";

type Settle = (error?: Error, response?: InteractResponse) => void;

/** An open `Interact` RPC. Not safe for parallel use. */
export class Stream {
  readonly #call: ClientDuplexStream<InteractRequest, InteractResponse>;
  #settle: Settle | undefined;
  #broken: Error | undefined;

  constructor(client: ToolServiceClient) {
    this.#call = client.interact();
    this.#call.on("data", (response: InteractResponse) => this.#answer(undefined, response));
    this.#call.on("error", (error) => this.#break(error));
    this.#call.on("end", () => this.#break(new Error("the service has closed the stream")));
  }

  /**
   * Returns the response to a request.
   *
   * @throws Error - of gRPC, or because the service has closed the stream.
   */
  exchange(request: InteractRequest): Promise<InteractResponse> {
    return new Promise((resolve, reject) => {
      this.#settle = (error, response) => (response ? resolve(response) : reject(error));
      if (this.#broken) this.#answer(this.#broken);
      else this.#call.write(request);
    });
  }

  /** Closes the stream; a waiting request fails. */
  close(): void {
    this.#break(new Error("closed"));
    this.#call.cancel();
  }

  #break(error: Error): void {
    this.#broken ??= error;
    this.#answer(this.#broken);
  }

  #answer(error?: Error, response?: InteractResponse): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(error, response);
  }
}
