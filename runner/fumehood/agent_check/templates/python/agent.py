"""Calls every tool once, without arguments, and submits the results. Put your logic here."""


class Agent:
    """Is created once per episode; `run` is called once per user turn."""

    def run(self, session):
        """Follow `session.task.instruction`."""
        results = []
        for tool in session.task.tools:
            if not session.ended:
                results.append(f"{tool.name}: {session.call(tool.name).result}"[:200])
        session.submit("\n".join(results))
