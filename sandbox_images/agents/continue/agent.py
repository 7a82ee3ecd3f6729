"""Continue's command line, unmodified: model by base URL, tools by MCP over a pipe."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from seat import HELPER, converse

NODE, *DIALECT = sys.argv[1:]
CN = "/continue/node_modules/@continuedev/cli/dist/cn.js"
CONFIG = Path("/tmp/config.yaml")
BASE = os.environ["OPENAI_BASE_URL"]
with urlopen(BASE + "/models") as models:
    MODEL = json.load(models)["data"][0]["id"]
ASKED = {
    "name": MODEL,
    "provider": (DIALECT or ["openai"])[0],  # "anthropic" asks for Anthropic's messages.
    "model": MODEL,
    "apiBase": BASE + "/",
    "apiKey": "none",
    "roles": ["chat"],
}
SEAT = {"name": "seat", "command": HELPER, "args": ["mcp"]}
SETTINGS = {"name": "box", "version": "1.0.0", "schema": "v1"}
# JSON is YAML.
CONFIG.write_text(json.dumps({**SETTINGS, "models": [ASKED], "mcpServers": [SEAT]}))
switches = ["--config", str(CONFIG), "--auto", "--print"]


def answer(message: str) -> str:
    """Answer a message of the user, with the tools that are available now."""
    done = subprocess.run(
        [NODE, CN, *switches, message], stdout=subprocess.PIPE, text=True, check=True
    )
    if "--resume" not in switches:
        switches.append("--resume")
    return done.stdout.strip()


converse(answer)
