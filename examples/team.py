"""A supervisor that passes the task to one worker after the other until one succeeds."""


class Supervisor:
    """Gives each worker the whole task; a worker that cannot solve it leaves."""

    def __init__(self, workers=3):
        self.names = [f"worker{number}" for number in range(1, workers + 1)]

    def run(self, session):
        """Submit the order to each worker, and the first answer as the final one."""
        instruction = session.task.instruction.partition("\n\nYou lead a team")[0]
        for name in self.names:
            if not session.submit(f"@{name}: {instruction}"):
                return
            message = session.task.instruction
            if not message.endswith("has left."):
                session.submit(message.partition(": ")[2])
                return
        session.give_up("no worker can solve the task")
