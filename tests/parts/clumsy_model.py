"""A model that makes two calls that fail, in the words of whichever scaffold asks it."""

from __future__ import annotations

import json

from fumehood.testing.scripted_models import AskedOfModel
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse

CALLS = [
    ToolUse("get_account", {"id": "absent"}, "call_1"),
    ToolUse("no_such_tool", {}, "call_2"),
]


def clumsy(asked: AskedOfModel) -> ScriptedReply:
    """A model that makes two calls and then has something to say, whichever way it is asked."""
    messages = asked.request["messages"]
    turns = sum(message["role"] == "assistant" for message in messages)
    said = str(messages[0]["content"])
    if "Do not call any tool yet" in said:
        return ScriptedReply(text="1. Look. 2. Say.", usage=(20, 6))
    if turns >= len(CALLS):
        text = "Answer: two tries" if "Action:" in said else "two tries"
        return ScriptedReply(text=text, usage=(60, 4))
    call = CALLS[turns]
    arguments = json.dumps(dict(call.arguments))
    if "Action:" in said:
        return ScriptedReply(
            text=f"Hm.\nAction: {call.name}\nInput: {arguments}\nObservation: none", usage=(50, 9)
        )
    if "writing Python" in said:
        made = f"    print(call({call.name!r}, **{dict(call.arguments)!r}))"
        code = f"```python\ntry:\n{made}\nexcept ToolFailed as error:\n    print(error)\n```"
        return ScriptedReply(text=code, usage=(50, 9))
    return ScriptedReply(tools=(call,), usage=(50, 9))
