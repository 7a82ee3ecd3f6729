#!/bin/sh
# Forks in the background until an error. Bounded, in case there is no limit.
echo "tried fork without end: begun"
bomb() {
    [ "$1" -gt 6 ] && { sleep 3; return; }
    bomb $(($1 + 1)) 2>/dev/null &
    bomb $(($1 + 1)) 2>/dev/null &
    sleep 3
}
bomb 0 2>/dev/null
