# Read by the other scripts: where the command is, where the state is, how much may be open.
# Variables: PTY_FABRIC (the command, else `fabric` on the PATH), FABRIC_CONFIG (a settings
# file), FABRIC_STATE_DIR (the same path on every machine), NODE_IP (this machine's address).
# shellcheck shell=sh disable=SC3045
set -eu

fabric=${PTY_FABRIC:-fabric}
state=${FABRIC_STATE_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/pty-fabric}
export FABRIC_STATE_DIR="$state"

# Every session costs some descriptors; the soft limit may rise to the hard one without root.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true

die() {
    echo "$(basename "$0"): $*" >&2
    exit 2
}

command -v "$fabric" >/dev/null 2>&1 || die "no command '$fabric'; set PTY_FABRIC=/path/to/fabric"

# Ray's token from the file RAY_TOKEN_FILE names (a mounted secret) into the state folder.
take_token() {
    [ -n "${RAY_TOKEN_FILE:-}" ] || return 0
    mkdir -p "$state"
    chmod 700 "$state"
    (umask 077 && tr -d ' \n' <"$RAY_TOKEN_FILE" >"$state/ray.token.new")
    mv "$state/ray.token.new" "$state/ray.token"
}

# The address by which the machine reaches another one is the one to be reached by.
node_ip() {
    if [ -n "${NODE_IP:-}" ]; then
        echo "$NODE_IP"
        return
    fi
    if command -v ip >/dev/null 2>&1; then
        to=$(getent ahostsv4 "$1" | sed -n '1s/ .*//p')
        ip -o route get "${to:-$1}" 2>/dev/null | sed -n 's/.* src \([^ ]*\).*/\1/p'
    else
        interface=$(route get "$1" 2>/dev/null | sed -n 's/ *interface: //p')
        [ -z "$interface" ] || ipconfig getifaddr "$interface"
    fi
}
