# RabbitMQ as the reference: 4.3 out of Debian's unstable suite, unpacked into a folder of its own, or the 3.10 that
# Debian stable installs. Sourced by broker.sh.
# COURSER_RABBITMQ=4 or 3 asks for one of them; without it 4.3 is taken, and 3.10 where that can't be had.

# Where 4.3 is unpacked: no package of the machine's own is touched, and deleting the folder removes it.
rabbitmq4_folder=$(realpath -m "$(dirname "${BASH_SOURCE[0]}")/../../bench/.cache/rabbitmq-4")
rabbitmq4_mirror=${COURSER_DEBIAN_MIRROR:-http://deb.debian.org/debian}
# Beside its dependencies: what its start scripts call, which Debian takes for granted.
rabbitmq4_packages=(rabbitmq-server base-files bash coreutils dash debianutils grep hostname libc-bin mawk sed util-linux)

# own_mounts COMMAND...: with a view of the mounts of its own, which no other process sees and which ends with the command.
own_mounts() {
    if [[ $EUID -eq 0 ]]; then unshare --mount "$@"; else unshare --mount --map-root-user "$@"; fi
}

# Downloads 4.3 and unpacks it, once. Says why not, and fails, where that is not possible.
unpack_rabbitmq4() {
    [[ -f $rabbitmq4_folder/unpacked ]] && return
    local why
    if ! why=$(rabbitmq4_obstacle); then
        echo "RabbitMQ 4.3 can't be had: $why" >&2
        return 1
    fi
    say "unpacking RabbitMQ 4.3 from Debian unstable into ${rabbitmq4_folder#"$PWD/"} (70 MB to fetch)" >&2
    rm -rf "$rabbitmq4_folder"
    mkdir -p "$rabbitmq4_folder"/{root,apt/lists/partial,apt/archives/partial}
    if ! with_timeout 900 bash -c "$(declare -f fetch_rabbitmq4); fetch_rabbitmq4 \"\$@\"" fetch \
        "$rabbitmq4_folder" "$rabbitmq4_mirror" "${rabbitmq4_packages[@]}" >"$rabbitmq4_folder/log" 2>&1; then
        echo "RabbitMQ 4.3 can't be had: $(tail -n 1 "$rabbitmq4_folder/log") (all of it: $rabbitmq4_folder/log)" >&2
        return 1
    fi
    rm -rf "$rabbitmq4_folder/apt"
    touch "$rabbitmq4_folder/unpacked"
}

# What the machine lacks for it.
rabbitmq4_obstacle() {
    local tool
    for tool in apt-get dpkg-deb unshare chroot; do
        command -v "$tool" >/dev/null 2>&1 || { echo "there is no $tool: it is unpacked from Debian's packages"; return 1; }
    done
    [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] ||
        { echo "there is no /usr/share/keyrings/debian-archive-keyring.gpg to check packages with"; return 1; }
    own_mounts true 2>/dev/null || { echo "mount namespaces are not permitted here (unshare --mount)"; return 1; }
}

# fetch_rabbitmq4 FOLDER MIRROR PACKAGE...: an apt with lists and state of its own says what belongs to it.
fetch_rabbitmq4() {
    set -euo pipefail
    local folder=$1 mirror=$2 apt package
    shift 2
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror unstable main" >"$folder/apt/sources.list"
    : >"$folder/apt/status"
    apt=(apt-get --quiet --quiet --assume-yes -o "Dir::Etc::sourcelist=$folder/apt/sources.list"
        -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o "Dir::State=$folder/apt"
        -o "Dir::State::status=$folder/apt/status" -o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt"
        -o "Dir::Cache::archives=$folder/apt/archives" -o APT::Install-Recommends=false -o Acquire::Languages=none
        -o APT::Sandbox::User= -o Debug::NoLocking=true)
    "${apt[@]}" update
    "${apt[@]}" install --download-only "$@"
    # base-files makes the links from bin to usr/bin, through which others unpack.
    for package in "$folder"/apt/archives/{base-files_,}*.deb; do dpkg-deb --extract "$package" "$folder/root"; done
    # What the packages' own scripts would have made, as far as RabbitMQ looks at it.
    ln -sf mawk "$folder/root/usr/bin/awk"
    echo '127.0.0.1 localhost' >"$folder/root/etc/hosts"
    echo 'root:x:0:0:root:/root:/bin/sh' >"$folder/root/etc/passwd"
    echo 'root:x:0:' >"$folder/root/etc/group"
    printf '%s: files\n' hosts passwd group >"$folder/root/etc/nsswitch.conf"
}

# in_rabbitmq4 FOLDER COMMAND...: in the unpacked system, which sees the folder under its own name. Replaces the shell.
in_rabbitmq4() {
    # shellcheck disable=SC2016
    local enter='
        for shared in /proc /dev "$2"; do
            mkdir -p "$1$shared" && mount --rbind "$shared" "$1$shared" || exit
        done
        root=$1
        shift 2
        exec chroot "$root" "$@"'
    exec unshare --mount $([[ $EUID -eq 0 ]] || echo --map-root-user) sh -c "$enter" enter "$rabbitmq4_folder/root" "$@"
}

# Sets `rabbitmq_major`: which of the two is started.
choose_rabbitmq() {
    case ${COURSER_RABBITMQ:-} in
        4) unpack_rabbitmq4 || exit 1 ;;
        3) rabbitmq_major=3 && return ;;
        '') unpack_rabbitmq4 || { echo "taking RabbitMQ 3.10 from Debian stable instead" >&2 && rabbitmq_major=3 && return; } ;;
        *) die "COURSER_RABBITMQ is ${COURSER_RABBITMQ}; it may be 4 or 3" ;;
    esac
    rabbitmq_major=4
}

# install_rabbitmq: makes sure that the chosen one is there.
install_rabbitmq() {
    choose_rabbitmq
    [[ $rabbitmq_major -eq 4 || -x /usr/lib/rabbitmq/bin/rabbitmq-server ]] || debian_packages rabbitmq-server
}

# start_rabbitmq FOLDER [PLUGINS [SETTING]]: a node of its own beside any that runs on this machine: own ports, own
# name, own epmd, all files in FOLDER, only the plug-ins on that are named (separated by commas).
start_rabbitmq() {
    local folder plugins=${2:-} setting=${3:-} port dist_port epmd_port inside=(exec)
    folder=$(realpath "$1")
    install_rabbitmq
    port=${COURSER_TEST_PORT:-$(free_port)} dist_port=$(free_port) epmd_port=$(free_port)
    broker_log=$folder/broker.log
    broker_uri=amqp://guest:guest@127.0.0.1:$port/%2F
    mkdir -p "$folder/home"
    # The largest message is a setting: the reference gets the figure that the suite expects.
    printf '%s\n' "listeners.tcp.1 = 127.0.0.1:$port" "$setting" \
        "max_message_size = ${COURSER_AMQP_MAX_MESSAGE_BYTES:-16777216}" \
        'log.console = true' 'log.console.level = warning' 'log.file = false' >"$folder/rabbitmq.conf"
    if [[ $rabbitmq_major -eq 4 ]]; then
        # What 4.3 still has but no longer allows by default; Courser allows it.
        printf 'deprecated_features.permit.%s = true\n' transient_nonexcl_queues global_qos >>"$folder/rabbitmq.conf"
        inside=(in_rabbitmq4 "$folder")
    fi
    echo "[$plugins]." >"$folder/enabled_plugins"
    export ERL_EPMD_PORT=$epmd_port ERL_EPMD_ADDRESS=127.0.0.1
    ("${inside[@]}" epmd) >/dev/null 2>&1 &
    epmd_pid=$!
    (
        export HOME=$folder/home RABBITMQ_NODENAME=courser-reference-$port@localhost RABBITMQ_DIST_PORT=$dist_port \
            RABBITMQ_MNESIA_BASE=$folder/mnesia RABBITMQ_LOG_BASE=$folder/log RABBITMQ_PID_FILE=$folder/pid \
            RABBITMQ_CONF_ENV_FILE=/dev/null RABBITMQ_CONFIG_FILE=$folder/rabbitmq.conf \
            RABBITMQ_ADVANCED_CONFIG_FILE=$folder/none RABBITMQ_ENABLED_PLUGINS_FILE=$folder/enabled_plugins \
            RABBITMQ_GENERATED_CONFIG_DIR=$folder/generated
        "${inside[@]}" /usr/lib/rabbitmq/bin/rabbitmq-server
    ) >"$broker_log" 2>&1 &
    broker_pid=$!
    wait_for_broker 90
}
