"""An agent that calls one tool and ends."""

from fumehood_agent import Action, GiveUp, Observation


class Cautious:
    """Calls the first tool without required arguments once; gives up if there is none."""

    def reset(self) -> None:
        """Keep nothing between tasks."""

    def act(self, observation: Observation) -> Action | GiveUp | None:
        """Call the first tool without required arguments."""
        if observation["transcript"]:
            return None
        for tool in observation["tool_schemas"]:
            if not tool["required"]:
                return {"tool_name": tool["name"], "args": {}}
        return GiveUp("every tool requires arguments")
