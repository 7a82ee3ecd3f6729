#!/bin/sh
# The agent comes through whatever a seat may do to it.
exec fumehood agent check "$(dirname "$0")"
