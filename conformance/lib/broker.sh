# Starts and stops the broker under test: ours, or RabbitMQ as the reference (rabbitmq.sh). Sourced.
# Each start sets `broker_pid`, `broker_uri` and `broker_log`; `stop_broker` belongs in an exit trap.

. "$(dirname "${BASH_SOURCE[0]}")/rabbitmq.sh"

broker_pid=
broker_uri=
broker_log=
epmd_pid=

# build_courser: what cargo makes of the sources; sets COURSER_TEST_BINARY.
build_courser() {
    local root
    need cargo "install Rust from https://rustup.rs"
    say "building courser"
    root=$(dirname "${BASH_SOURCE[0]}")/../..
    (cd "$root" && cargo build --quiet --profile quick -p courser) || die "the broker does not build"
    COURSER_TEST_BINARY=$(cd "$root" && cargo metadata --no-deps --format-version 1 |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/quick/courser
    export COURSER_TEST_BINARY
}

# start_courser BINARY FOLDER [OPTION...]: our broker, with its data and log in FOLDER, on a free port or on
# COURSER_TEST_PORT; without the HTTP API and metrics unless COURSER_MANAGEMENT_LISTEN and COURSER_METRICS_LISTEN name
# addresses, as their usual ones may be another broker's.
start_courser() {
    local binary=$1 folder=$2 port
    shift 2
    port=${COURSER_TEST_PORT:-$(free_port)}
    broker_log=$folder/broker.log
    broker_uri=amqp://guest:guest@127.0.0.1:$port/%2F
    COURSER_MANAGEMENT_LISTEN=${COURSER_MANAGEMENT_LISTEN:-none} \
        COURSER_METRICS_LISTEN=${COURSER_METRICS_LISTEN:-none} \
        "$binary" --listen "127.0.0.1:$port" --data-dir "$folder/data" "$@" >"$broker_log" 2>&1 &
    broker_pid=$!
    wait_for_broker 30
}

# wait_for_broker SECONDS: until it answers the protocol header, or its process ends, or the time is over.
wait_for_broker() {
    local deadline=$((SECONDS + $1))
    until probe_broker "$broker_uri" >/dev/null 2>&1; do
        kill -0 "$broker_pid" 2>/dev/null || { show_broker_log; die "the broker ended while it started"; }
        [[ $SECONDS -lt $deadline ]] || { show_broker_log; die "the broker did not answer within $1 s"; }
        sleep 0.2
    done
}

# probe_broker URI: prints its product and version as it announces them, `RabbitMQ 4.3.6`.
probe_broker() { python3 "$(dirname "${BASH_SOURCE[0]}")/probe.py" "$1"; }

show_broker_log() {
    [[ -s $broker_log ]] || { echo "(the broker logged nothing)"; return; }
    echo "-- the end of the broker's log, $broker_log"
    tail -n "${1:-40}" "$broker_log" | cut -c 1-240
}

# stop_broker_and_clear FOLDER...: of what a broker has left in a folder only its log stays: a journal takes 256 MiB and more.
stop_broker_and_clear() {
    local folder
    stop_broker
    for folder in "$@"; do rm -rf "${folder:?}/data"; done
}

# Asks politely, then kills; leaves no process behind. Says so when the broker had died by itself.
stop_broker() {
    local _
    if [[ -n $broker_pid ]]; then
        kill -TERM "$broker_pid" 2>/dev/null || echo "the broker was gone before it was stopped" >&2
        for _ in {1..100}; do
            kill -0 "$broker_pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$broker_pid" 2>/dev/null || true
        wait "$broker_pid" 2>/dev/null || true
        broker_pid=
    fi
    if [[ -n $epmd_pid ]]; then
        kill "$epmd_pid" 2>/dev/null || true
        wait "$epmd_pid" 2>/dev/null || true
        epmd_pid=
    fi
}
