# Starts and stops the broker under test: ours, or RabbitMQ from Debian as the reference. Sourced.
# Each start sets `broker_pid`, `broker_uri` and `broker_log`; `stop_broker` belongs in an exit trap.

broker_pid=
broker_uri=
broker_log=
epmd_pid=

# start_courser BINARY FOLDER [OPTION...]: our broker on a free port, with its data and log in FOLDER.
start_courser() {
    local binary=$1 folder=$2 port
    shift 2
    port=$(free_port)
    broker_log=$folder/broker.log
    broker_uri=amqp://guest:guest@127.0.0.1:$port/%2F
    "$binary" --listen "127.0.0.1:$port" --data-dir "$folder/data" "$@" >"$broker_log" 2>&1 &
    broker_pid=$!
    wait_for_broker 30
}

# start_rabbitmq FOLDER [PLUGINS [SETTING]]: a node of its own beside any that runs on this machine: own ports, own
# name, own epmd, all files in FOLDER, only the plug-ins on that are named (separated by commas).
start_rabbitmq() {
    local folder=$1 plugins=${2:-} setting=${3:-} port dist_port epmd_port home=/usr/lib/rabbitmq
    [[ -x $home/bin/rabbitmq-server ]] || debian_packages rabbitmq-server
    port=$(free_port) dist_port=$(free_port) epmd_port=$(free_port)
    broker_log=$folder/broker.log
    broker_uri=amqp://guest:guest@127.0.0.1:$port/%2F
    mkdir -p "$folder/home"
    # The largest message is a setting: the reference gets the figure that the suite expects.
    printf '%s\n' "listeners.tcp.1 = 127.0.0.1:$port" "$setting" \
        "max_message_size = ${COURSER_AMQP_MAX_MESSAGE_BYTES:-16777216}" \
        'log.console = true' 'log.console.level = warning' 'log.file = false' >"$folder/rabbitmq.conf"
    echo "[$plugins]." >"$folder/enabled_plugins"
    export ERL_EPMD_PORT=$epmd_port ERL_EPMD_ADDRESS=127.0.0.1
    epmd >/dev/null 2>&1 &
    epmd_pid=$!
    env HOME="$folder/home" \
        RABBITMQ_NODENAME="courser-reference-$port@localhost" RABBITMQ_DIST_PORT="$dist_port" \
        RABBITMQ_MNESIA_BASE="$folder/mnesia" RABBITMQ_LOG_BASE="$folder/log" \
        RABBITMQ_PID_FILE="$folder/pid" RABBITMQ_CONF_ENV_FILE=/dev/null \
        RABBITMQ_CONFIG_FILE="$folder/rabbitmq.conf" RABBITMQ_ADVANCED_CONFIG_FILE="$folder/none" \
        RABBITMQ_ENABLED_PLUGINS_FILE="$folder/enabled_plugins" RABBITMQ_GENERATED_CONFIG_DIR="$folder/generated" \
        "$home/bin/rabbitmq-server" >"$broker_log" 2>&1 &
    broker_pid=$!
    wait_for_broker 90
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

# probe_broker URI: prints its product and version as it announces them, `RabbitMQ 3.10.8`.
probe_broker() { python3 "$(dirname "${BASH_SOURCE[0]}")/probe.py" "$1"; }

show_broker_log() {
    [[ -s $broker_log ]] || { echo "(the broker logged nothing)"; return; }
    echo "-- the end of the broker's log, $broker_log"
    tail -n "${1:-40}" "$broker_log" | cut -c 1-240
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
