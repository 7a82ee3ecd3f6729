#!/bin/sh
# Runs the agent on all robustness cases.
exec fumehood agent check "$(dirname "$0")"
