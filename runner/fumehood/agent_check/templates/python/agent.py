"""Calls every tool once, without arguments, and answers with what they said. Begin here."""


class Agent:
    """Works at a seat; made anew for each episode, and run again when the user says more."""

    def run(self, session):
        """Do what `session.task.instruction` asks."""
        said = []
        for tool in session.task.tools:
            if not session.ended:
                said.append(f"{tool.name}: {session.call(tool.name).result}"[:200])
        session.submit("\n".join(said))
