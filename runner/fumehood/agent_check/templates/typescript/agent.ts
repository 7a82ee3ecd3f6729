/** Calls every tool once, without arguments, and answers with what they said. Begin here. */

import { connect } from "@fumehood/sdk";

const session = await connect();
while (!session.ended) { // As long as the user has more to say.
  const said: string[] = [];
  for (const { name } of session.task.tools) {
    if (session.ended) break;
    const { result } = await session.call(name);
    const text = result.kind === "value" ? result.json : result.message;
    said.push([...`${name}: ${text}`].slice(0, 200).join(""));
  }
  await session.submit(said.join("\n"));
}
