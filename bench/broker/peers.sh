# Starts brokers of others that the machine may have. Sourced by `serve`, after conformance/lib/broker.sh, whose
# variables these set too. Every port is one of its own: nothing may answer where a broker of the machine's does.

# What runs each, on PATH: StrangeQ calls its own `amqp-server`.
declare -A peer_programs=([lavinmq]=lavinmq [strangeq]=amqp-server)

need_peer() {
    need "${peer_programs[$1]}" "it is $1's program; put its folder on PATH, or leave $1 out of --brokers"
}

# start_lavinmq FOLDER
start_lavinmq() {
    local folder=$1 port kind ports=()
    need_peer lavinmq
    port=$(free_port)
    for kind in http metrics-http mqtt; do ports+=("--$kind-port=$(free_port)"); done
    broker_log=$folder/broker.log
    broker_uri=amqp://guest:guest@127.0.0.1:$port/%2F
    # An empty configuration of our own: the machine's may say anything. -1 leaves a port out.
    : >"$folder/lavinmq.ini"
    lavinmq --config="$folder/lavinmq.ini" --data-dir="$folder/data" --bind=127.0.0.1 --amqp-port="$port" \
        --amqps-port=-1 --https-port=-1 --mqtts-port=-1 "${ports[@]}" >"$broker_log" 2>&1 &
    broker_pid=$!
    wait_for_broker 30
}

# start_strangeq FOLDER
start_strangeq() {
    local folder=$1 port settings=$1/strangeq.yaml
    need_peer strangeq
    port=$(free_port)
    broker_log=$folder/broker.log
    broker_uri=amqp://guest:guest@127.0.0.1:$port/%2F
    # Its own defaults but for place and address. A file that names only these would lose all the others.
    amqp-server --generate-config "$settings" >"$broker_log" || die "StrangeQ wrote no configuration: $(<"$broker_log")"
    sed -i -e "s|^\( *address:\) :5672$|\1 127.0.0.1:$port|" -e "s|^\( *port:\) 5672$|\1 $port|" \
        -e "s|^\( *path:\) ./data$|\1 $folder/data|" "$settings"
    grep -q "127.0.0.1:$port" "$settings" && grep -q "path: $folder/data" "$settings" ||
        die "StrangeQ's configuration has another form than expected: $settings"
    (cd "$folder" && exec amqp-server --config "$settings") >"$broker_log" 2>&1 &
    broker_pid=$!
    wait_for_broker 30
}
