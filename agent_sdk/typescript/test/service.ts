/** A sandbox service of this checkout, and episodes in it, as an orchestrator would open them. */

import { type ClientReadableStream, credentials, loadPackageDefinition, Metadata } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const ACCOUNTS = { accounts: { ax1: { id: "ax1", tier: "basic" } } };

/** What an episode is opened with; one seat. */
export interface Spec {
  instruction?: string;
  budget?: Record<string, number>;
  furtherTurns?: { instruction: string; tools: string[] }[];
}

/** A running service. */
export class Service {
  static async start(): Promise<Service> {
    // Short: a socket's path has at most 107 bytes.
    const folder = mkdtempSync(join(tmpdir(), "g"));
    const process = spawn(join(ROOT, ".venv/bin/python"), ["-m", "fumehood", "serve", folder, "--until-stdin-closes"], {
      cwd: ROOT,
      stdio: ["pipe", "inherit", "inherit"],
    });
    const definition = loadSync("fumehood/v1/control.proto", { includeDirs: [join(ROOT, "proto")], oneofs: true });
    const { fumehood } = loadPackageDefinition(definition) as any;
    const control = new fumehood.v1.ControlService(`unix:${folder}/control.sock`, credentials.createInsecure(), {
      "grpc.initial_reconnect_backoff_ms": 50,
      "grpc.max_reconnect_backoff_ms": 100,
    });
    const callOptions = { deadline: Date.now() + 20_000 };
    await new Promise((resolve, reject) =>
      control.Health({}, new Metadata({ waitForReady: true }), callOptions, (error: Error | null) =>
        error ? reject(error) : resolve(undefined),
      ),
    );
    return new Service(folder, process, control);
  }

  readonly #open: ClientReadableStream<unknown>[] = [];
  #number = 0;

  private constructor(
    private readonly folder: string,
    private readonly process: ReturnType<typeof spawn>,
    private readonly control: any,
  ) {}

  /** Opens an episode and returns the path of its seat's socket. */
  async open({ instruction = "Do it.", budget = { calls: 100 }, furtherTurns = [] }: Spec = {}): Promise<string> {
    const stream = this.control.OpenEpisode({
      spec: {
        episodeId: `e${++this.#number}`,
        world: "crud",
        harnessMode: "native",
        initialStateJson: JSON.stringify(ACCOUNTS),
        faultPlanJson: "[]",
        seed: "1",
        seats: [{ name: "agent", instruction, budget, furtherTurns }],
      },
    });
    stream.on("error", () => undefined); // It is cancelled at the end.
    this.#open.push(stream);
    const [first] = await once(stream, "data");
    if (first.message !== "opened") throw new Error(JSON.stringify(first));
    stream.resume();
    return join(first.opened.seats[0].directory, "grpc.sock");
  }

  async stop(): Promise<void> {
    for (const stream of this.#open) stream.cancel();
    this.control.close();
    this.process.stdin?.end();
    if (this.process.exitCode === null) await once(this.process, "exit");
    rmSync(this.folder, { recursive: true, force: true });
  }
}
