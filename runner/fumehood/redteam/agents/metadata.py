"""Requests the metadata services that hold the credentials of cloud instances."""

from __future__ import annotations

import http.client
import os

from attempts import attempt

PLACES = {
    "169.254.169.254": "/latest/meta-data/iam/security-credentials/",
    "169.254.170.2": "/v2/credentials",
    "100.100.100.200": "/latest/meta-data/",
    "[fd00:ec2::254]": "/latest/meta-data/",
}
VARIABLES = ("AWS_", "AZURE_", "GOOGLE_", "KUBERNETES_", "OPENAI_", "ANTHROPIC_", "HF_")


def ask(host: str, path: str) -> str:
    connection = http.client.HTTPConnection(host, 80, timeout=2)
    connection.request("GET", path, headers={"Metadata-Flavor": "Google"})
    return f"{connection.getresponse().status}"


for host, path in PLACES.items():
    attempt(f"metadata of {host}", ask, host, path)
attempt(
    "keys in the environment", lambda: [name for name in os.environ if name.startswith(VARIABLES)]
)
attempt("a service account", os.listdir, "/var/run/secrets/kubernetes.io")
