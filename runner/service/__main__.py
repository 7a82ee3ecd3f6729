"""``python -m runner.service DIRECTORY``: what the orchestrator starts."""

import sys
from pathlib import Path

from runner.service.serve import serve

serve(Path(sys.argv[1]), until_stdin_closes=True)
