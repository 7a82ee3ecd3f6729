"""An agent that sets the tier of the account that its instruction names."""

import re

from fumehood_agent import Failure


class Agent:
    """Corrects a rejected call once: renames arguments, or tries again."""

    def run(self, session):
        """Perform the task and end it."""
        account, tier = re.findall(r"account (\w+) to tier (\w+)", session.task.instruction)[0]
        arguments = {"id": account, "patch": {"tier": tier}}
        result = session.call("update_account", arguments).result
        if isinstance(result, Failure):
            result = session.call("update_account", self.corrected(arguments, result)).result
        if isinstance(result, Failure):
            session.give_up(result.message)
        else:
            session.submit("done")

    def corrected(self, arguments, failure):
        """Return the arguments with the names that the failure expects instead."""
        expected = failure.details.get("expected", [])
        unknown = failure.details.get("unknown", [])
        renamed = dict(zip(unknown, expected, strict=False))
        return {renamed.get(name, name): value for name, value in arguments.items()}
