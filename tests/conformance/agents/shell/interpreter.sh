# The common part of both shell agents: executes scripts step by step and prints observations.
# The including script defines: instruction, tell_task, send_call, end, answer_user, goes_on,
# cancel. A step is a file, $step, and its parts are variables.
# The README of the protocol cases describes the steps.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
script=$scratch/script answer=$scratch/answer ended=$scratch/ended said=$scratch/said

do_step() {
    eval "$(jq -r '@sh "do=\(.do) tool=\(.tool // "") id=\(.id // "") deadline_ms=\(.deadline_ms // "") measure=\(.measure // "")"' "$step")"
    case $do in
    task) tell_task ;;
    call) jq -c .arguments "$step" >"$scratch/arguments"; send_call ;;
    raw_call) jq -j .text "$step" >"$scratch/arguments"; send_call ;;
    submit | give_up) jq -j '.answer // .reason' "$step" >"$scratch/text"; end ;;
    cancel_stream) jq -c .arguments "$step" >"$scratch/arguments"; cancel; printf '{"cancelled":true}' ;;
    reconnect) printf '{"reconnected":true}' ;; # Every request has a new connection.
    *) echo "no such step: $do" >&2; exit 1 ;;
    esac
}

# Waits until a call is under way that was sent into the background, and breaks it off.
break_off() {
    sleep 0.005
    kill "$1" 2>/dev/null || :
    wait "$1" || :
}

# Prints what was observed of a value, whose text is in the file $1; no digit of it is touched.
value() {
    if [ "$measure" ]; then
        printf '{"bytes":%d' "$(jq -j ".$measure" "$1" | wc -c)"
    else
        printf '{"value":%s' "$(cat "$1")"
    fi
}

# Closes an observation, and says so when $1 is "true": it was the last.
last() { if [ "$1" = true ]; then : >"$ended"; printf ',"ended":true}'; else printf '}'; fi; }

observed=
while [ ! -e "$ended" ]; do
    instruction >"$script"
    jq -c '.steps[]' "$script" | split -l 1 - "$scratch/step."
    observations=
    for step in "$scratch"/step.*; do
        observations="$observations${observations:+,}$(do_step)"
        rm "$step"
    done
    observed="$observed${observed:+,}$observations"
    if [ ! -e "$ended" ]; then
        printf '[%s]' "$observations" >"$scratch/text"
        answer_user >"$answer"
        goes_on || : >"$ended"
    fi
done
printf '[%s]\n' "$observed"
