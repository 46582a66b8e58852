#!/usr/bin/env bash
# Runs a command in a user-mode kernel (build.sh) in virtual time: with this machine's files, in this
# folder, as root of its own network. Its output and its exit code are the command's.
#
#   [CPU=0] bench/virtual/run.sh KERNEL COMMAND...
#
# All of it stays on one processor: kernel and programs take turns, and to wake another one costs
# seven times the time.
set -euo pipefail
usage="usage: bench/virtual/run.sh KERNEL COMMAND..."
kernel=$(realpath "${1:?$usage}")
shift
: "${1:?$usage}"
job=$(mktemp -d)
trap 'rm -rf "$job"' EXIT
cp "$(dirname "$0")/init.sh" "$job/init"
chmod +x "$job/init"
{ printf 'cd %q\n' "$PWD"; printf '%q ' "$@"; echo; } >"$job/command"
taskset -c "${CPU:-0}" "$kernel" mem="${MEMORY:-2G}" rootfstype=hostfs rw init="$job/init" \
  time-travel=inf-cpu seccomp=on con=null con0=null uml_dir="$job/" \
  </dev/null >"$job/log" 2>&1 || true
[ -s "$job/code" ] || { tail -20 "$job/log" >&2; echo "run: the kernel ended before the command" >&2; exit 3; }
cat "$job/err" >&2
cat "$job/out"
exit "$(cat "$job/code")"
