#!/bin/sh
# Prints without end, on both outputs.
echo "tried to print without end: begun"
line=$(printf '%01000d' 7)
flood() { while :; do echo "$line$line$line$line"; done; }
flood >&2 &
flood
