/**
 * Executes the script in its task with the TypeScript SDK, and prints its observations.
 *
 * The README of the protocol cases describes the steps.
 */

import {
  connect,
  DeadlinePassed,
  encode,
  Ended,
  type JsonObject,
  parseExact,
  RawJson,
  Refused,
  type Remaining,
  type Reply,
  type Session,
  type Task,
} from "@fumehood/sdk";

type Step =
  | { do: "task" }
  | { do: "call"; tool: string; arguments: JsonObject; id?: string; deadline_ms?: number; measure?: string }
  | { do: "raw_call"; tool: string; text: string; id?: string }
  | { do: "submit"; answer: string }
  | { do: "give_up"; reason: string }
  | { do: "cancel_stream"; tool: string; arguments: JsonObject; id: string }
  | { do: "reconnect" };
type Observation = JsonObject;

/** After which a call that was sent is on its way. */
const UNDER_WAY_MS = 5;

/** Does one step after the other and tells what it saw. */
class Interpreter {
  private task: Task;
  private left: Remaining;

  private constructor(private session: Session) {
    this.task = session.task;
    this.left = this.task.remaining;
  }

  static async start(): Promise<Interpreter> {
    return new Interpreter(await connect());
  }

  /** Carries out every script there is; returns all observations. */
  async work(): Promise<Observation[]> {
    const observed: Observation[] = [];
    while (!this.session.ended) {
      this.look();
      const script = parseExact(this.task.instruction) as { steps: Step[] };
      const observations: Observation[] = [];
      for (const step of script.steps) observations.push(await this.carryOut(step));
      observed.push(...observations);
      if (!this.session.ended) await this.session.submit(encode(observations));
    }
    this.session.close();
    return observed;
  }

  private look(): void {
    this.task = this.session.task;
    this.left = this.task.remaining;
  }

  private async carryOut(step: Step): Promise<Observation> {
    switch (step.do) {
      case "task":
        return { turn: this.task.turn, tools: this.task.tools.map(({ name }) => name), remaining: counted(this.left) };
      case "call": {
        const options = {
          ...(step.id !== undefined && { callId: step.id }),
          ...(step.deadline_ms !== undefined && { deadlineMs: step.deadline_ms }),
        };
        return this.observe(this.session.call(step.tool, step.arguments, options), step.measure);
      }
      case "raw_call":
        return this.observe(
          this.session.call(step.tool, new RawJson(step.text), step.id === undefined ? {} : { callId: step.id }),
        );
      case "submit":
        return ending(this.session.submit(step.answer));
      case "give_up":
        return ending(this.session.giveUp(step.reason));
      case "cancel_stream":
        return this.cancelStream(step.tool, step.arguments, step.id);
      case "reconnect":
        this.session.close();
        this.session = await connect();
        this.look();
        return { reconnected: true };
      default:
        throw new Error(`no such step: ${encode(step)}`);
    }
  }

  private async observe(calling: Promise<Reply>, measure?: string): Promise<Observation> {
    let reply: Reply;
    try {
      reply = await calling;
    } catch (error) {
      if (error instanceof DeadlinePassed) return { deadline: true };
      return refusal(error);
    }
    this.left = reply.remaining;
    const { result } = reply;
    const ended = reply.ended ? { ended: true } : {};
    if (result.kind === "failure") {
      return { failure: { code: result.code, message: result.message, details: new RawJson(result.json) }, ...ended };
    }
    if (measure !== undefined) return { bytes: new TextEncoder().encode(result.output[measure]).length, ...ended };
    return { value: new RawJson(result.json), ...ended };
  }

  private async cancelStream(tool: string, args: JsonObject, callId: string): Promise<Observation> {
    const second = await connect();
    const calling = second.call(tool, args, { callId }).catch(() => undefined); // It is to be cancelled.
    await new Promise((resolve) => setTimeout(resolve, UNDER_WAY_MS));
    second.close();
    await calling;
    return { cancelled: true };
  }
}

function counted({ wall_ms: _, ...others }: Remaining): JsonObject {
  return others;
}

async function ending(submitting: Promise<boolean>): Promise<Observation> {
  try {
    return { accepted: await submitting };
  } catch (error) {
    return refusal(error);
  }
}

function refusal(error: unknown): Observation {
  if (!(error instanceof Refused)) throw error;
  if (error instanceof Ended || error.limit === 0) return { refusal: error.kind };
  return { refusal: error.kind, limit: error.limit, actual: error.actual };
}

console.log(encode(await (await Interpreter.start()).work()));
