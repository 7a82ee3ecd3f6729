/** Calls every tool once, without arguments, and submits the results. Put your logic here. */

import { connect } from "@fumehood/sdk";

const session = await connect();
while (!session.ended) { // Repeat while the user sends more turns.
  const results: string[] = [];
  for (const { name } of session.task.tools) {
    if (session.ended) break;
    const { result } = await session.call(name);
    const text = result.kind === "value" ? result.json : result.message;
    results.push([...`${name}: ${text}`].slice(0, 200).join(""));
  }
  await session.submit(results.join("\n"));
}
