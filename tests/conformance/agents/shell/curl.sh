#!/bin/sh
# A conformance agent out of curl and jq: each step is a message as JSON, over the second socket.
socket=$(dirname "${FUMEHOOD_SOCKET:-/fumehood/grpc.sock}")/http.sock

# Sends standard input to a method and prints the answer.
send() {
    method=$1
    shift
    curl --silent --show-error --unix-socket "$socket" --data-binary @- "$@" "http://box/fumehood.v1.ToolService/$method"
}

instruction() { echo '{}' | send GetTask | jq -j .instruction; }

tell_task() {
    echo '{}' | send GetTask | jq -c '{turn: (.turn // 1), tools: [.tools[].name],
        remaining: (.remaining // {} | del(.wall_ms) | map_values(tonumber))}'
}

# Prints the message of a call. From the step, because jq 1.6 spoils long raw text (-R) beyond
# ASCII.
message() { jq -c '{toolName: .tool, argumentsJson: (.text // (.arguments | tojson)), callId: (.id // "")}' "$step"; }

send_call() {
    status=0
    # shellcheck disable=SC2046
    message | send CallTool $([ "$deadline_ms" ] && printf -- '--max-time 0.%03d' "$deadline_ms") \
        >"$answer" 2>"$said" || status=$?
    case $status in
    0) tell_answer ;;
    28) printf '{"deadline":true}' ;;
    *) cat "$said" >&2; exit 1 ;;
    esac
}

tell_answer() {
    eval "$(jq -r '@sh "kinds=\(keys | join(" ")) is_last=\(.ended // false)"' "$answer")"
    case $kinds in
    *valueJson*) jq -j .valueJson "$answer" >"$scratch/value"; value "$scratch/value"; last "$is_last" ;;
    *failure*) printf '{"failure":'; jq -cj '.failure | {code, message, details: (.detailsJson // "{}" | fromjson)}' "$answer"; last "$is_last" ;;
    *) tell_refusal ;;
    esac
}

tell_refusal() {
    jq -cj '.refusal | (.kind | sub("REFUSAL_KIND_"; "") | ascii_downcase) as $kind | {refusal: $kind}
        + if .limit then {limit: (.limit | tonumber), actual: (.actual | tonumber)} else {} end' "$answer"
    ! grep -q REFUSAL_KIND_ENDED "$answer" || : >"$ended"
}

end() {
    jq -c 'if .reason then {giveUpReason: .reason} else {answer} end' "$step" | send Submit >"$answer"
    if grep -q '"refusal"' "$answer"; then tell_refusal; return; fi
    : >"$ended"
    jq -cj '{accepted: (.accepted // false)}' "$answer"
}

answer_user() { jq -Rsc '{answer: .}' "$scratch/text" | send Submit; }

goes_on() { [ "$(jq 'has("next")' "$answer")" = true ]; }

cancel() {
    message >"$scratch/message"
    curl --silent --unix-socket "$socket" --data-binary "@$scratch/message" http://box/fumehood.v1.ToolService/CallTool >/dev/null &
    break_off $!
}

. "$(dirname "$0")/interpreter.sh"
