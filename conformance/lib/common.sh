# Helpers shared by `dev`, the conformance runner and each client's `run`: progress lines, what
# has to be installed, free ports, and reading a test log. Sourced, never executed.

# A progress line: what starts now.
say() { printf '== %s\n' "$*"; }

# An explanation, and the end.
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# help_from_head SCRIPT ARGUMENT...: where the first argument asks for help, prints the comment at the script's head, and ends.
help_from_head() {
    [[ ${2:-} == --help || ${2:-} == -h ]] || return 0
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$1"
    exit
}

# need COMMAND HINT: the command must be there; HINT says how to get it.
need() { command -v "$1" >/dev/null 2>&1 || die "$1 is not installed; $2"; }

# debian_packages PACKAGE...: installs those that are missing, as root or with sudo; otherwise says
# which. Asks dpkg first, so that it costs nothing when all are there.
debian_packages() {
    local package missing=() as_root=()
    command -v dpkg-query >/dev/null 2>&1 || die "this is not Debian: install the equivalent of: $*"
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
            missing+=("$package")
    done
    [[ ${#missing[@]} -eq 0 ]] && return 0
    if [[ $EUID -ne 0 ]]; then
        sudo -n true 2>/dev/null || die "missing Debian packages; run: sudo apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing Debian packages: ${missing[*]}"
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
    # A fresh machine has no package lists yet; a used one may have old ones.
    "${as_root[@]}" "${apt[@]}" update >/dev/null
    "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null ||
        die "apt-get could not install: ${missing[*]}"
}

# up_to_date STAMP FILE...: true when STAMP was written (by `stamp`) for these very contents.
up_to_date() { [[ -f $1 && $(<"$1") == "$(cat "${@:2}" | sha256sum)" ]]; }
stamp() { cat "${@:2}" | sha256sum >"$1"; }

ports_script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/ports.py

# A TCP port of the loopback that was free a moment ago, and that no program gets that only connects.
free_port() { python3 "$ports_script"; }

# own_network COMMAND...: with the rights of root as far as the command needs them, and a network with nothing but its loopback.
own_network() {
    # shellcheck disable=SC2016
    unshare --net $([[ $EUID -eq 0 ]] || echo --map-root-user) sh -c 'ip link set lo up && exec "$@"' own_network "$@"
}

# Where cargo puts what it builds; CARGO_TARGET_DIR and configuration files may say so.
target_folder() {
    cargo metadata --no-deps --format-version 1 |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])'
}

# with_timeout [--signal=S] SECONDS COMMAND...: nothing may hang. The command is told to stop at its time limit and killed
# 10 s later, with all that it has started: what stays would keep the pipe open that another program reads. It alone is ended
# where the rest ends with the group of processes that it is in: within another time limit or a part of conformance/run, and
# at a terminal, by Ctrl-C.
with_timeout() {
    local alone=()
    if [[ -n ${COURSER_GROUP_ENDS:-} ]] || { : </dev/tty; } 2>/dev/null; then alone=(--foreground); fi
    COURSER_GROUP_ENDS=yes timeout "${alone[@]}" --kill-after=10 "$@"
}

# shorten LOG: what comes in, or its first part when it is long.
shorten() {
    awk -v log_file="$1" 'NR <= 150 { print } END { if (NR > 150) print "... all " NR " lines: see " log_file }'
}

# report PASSED FAILED STATUS: the last line that every client's `run` prints. A run that ended badly
# without a failed test (it did not compile, it was killed) counts as one failure.
report() {
    local passed=${1:-0} failed=${2:-0} status=$3
    [[ $status -ne 0 && $failed -eq 0 ]] && failed=1
    echo "$passed passed, $failed failed"
    [[ $failed -eq 0 ]]
}
