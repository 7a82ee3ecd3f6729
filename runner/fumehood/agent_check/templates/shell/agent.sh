#!/bin/sh
# Calls every tool once, without arguments, and answers with what they said. Begin here.
PATH=$PATH:/fumehood/bin

work() {
    fumehood task >&2
    fumehood tools | jq -r '.[].name' | while read -r tool; do
        fumehood call "$tool" | jq -r --arg tool "$tool" '"\($tool): \(tojson[:200])"'
    done
}

# As long as the user has more to say.
while work | fumehood submit - | grep -q '"next"'; do :; done
