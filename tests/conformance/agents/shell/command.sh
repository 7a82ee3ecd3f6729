#!/bin/sh
# A conformance agent out of the in-box command: each step is a command. jq only reads scripts.
fumehood=$(dirname "${FUMEHOOD_SOCKET:-/fumehood/grpc.sock}")/bin/fumehood

instruction() { "$fumehood" task; }

tell_task() {
    "$fumehood" tools >"$answer"
    "$fumehood" left | jq -c --slurpfile tools "$answer" \
        '{turn, tools: [$tools[0][].name], remaining: (.remaining | del(.wall_ms))}'
}

send_call() {
    status=0
    timeout "$(printf '0.%03d' "${deadline_ms:-0}")" "$fumehood" call --id "$id" "$tool" - \
        <"$scratch/arguments" >"$answer" 2>"$said" || status=$?
    # What it says besides an answer is that it was the last.
    is_last=$([ ! -s "$said" ] || echo true)
    case $status in
    0) value "$answer"; last "$is_last" ;;
    1) printf '{"failure":%s' "$(cat "$answer")"; last "$is_last" ;;
    2) tell_refusal ;;
    124) printf '{"deadline":true}' ;;
    *) cat "$said" >&2; exit 1 ;;
    esac
}

tell_refusal() {
    jq -cj 'if .limit == 0 then {refusal} else . end' "$answer"
    ! grep -q '"refusal":"ended"' "$answer" || : >"$ended"
}

end() {
    word=submit
    [ "$do" = submit ] || word=give-up
    if ! "$fumehood" "$word" - <"$scratch/text" >"$answer"; then tell_refusal; return; fi
    : >"$ended"
    tr -d '\n' <"$answer"
}

answer_user() { "$fumehood" submit - <"$scratch/text"; }

goes_on() { grep -q '"next"' "$answer"; }

cancel() {
    "$fumehood" call --id "$id" "$tool" - <"$scratch/arguments" >/dev/null &
    break_off $!
}

. "$(dirname "$0")/interpreter.sh"
