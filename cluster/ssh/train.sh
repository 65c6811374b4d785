#!/bin/bash
# Trains on machines that SSH reaches, with the scheduler and the client on this one:
#
#   HOSTS="node1 node2 node3" ADDRESS=10.0.0.1 SHARED=/shared/me X=.. Y=.. MODEL=model.dboost train.sh --set n_estimators=500
#
# The environment in which distboost is installed and the folder SHARED have the same paths on all machines. A worker that dies is
# started again by its nanny and joins the training; if a machine is lost, the training continues with the others. If this
# machine is lost, the same command continues from the checkpoint beside MODEL.
set -euo pipefail

: "${HOSTS:?the machines of the workers}" "${ADDRESS:?the address of this machine, which they reach}"
: "${SHARED:?a folder that all machines see}" "${X:?the features, a path or URL}" "${Y:?the labels}" "${MODEL:?the file to write}"
SSH=${SSH:-ssh -tt -o BatchMode=yes}  # -tt: what runs there ends with the connection
LOCAL=${LOCAL:-/tmp}                  # a disk of each machine: scores of rows that do not fit in memory
TLS=${TLS:-$SHARED/tls}
THREADS=${THREADS:-8}
MEMORY=${MEMORY:-24GiB}               # of each worker
BIN=$(dirname "$(command -v dask)")

[ -e "$TLS/key.pem" ] || distboost cluster certificates "$TLS"
# Nor do others read the pages of scheduler and workers, which TLS does not cover.
pages=(--no-dashboard --dashboard-address 127.0.0.1:0)
encryption=(--protocol tls --tls-ca-file "$TLS/ca.pem" --tls-cert "$TLS/cert.pem" --tls-key "$TLS/key.pem")
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true

file=$(mktemp -u "$SHARED/scheduler-XXXXXX.json")  # a new name: a lost machine leaves its file
trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$file"' EXIT
dask scheduler --host "$ADDRESS" --port 0 --scheduler-file "$file" "${pages[@]}" "${encryption[@]}" &
worker=(
    "$BIN/dask" worker --scheduler-file "$file" --nworkers 1 --nthreads "$THREADS" --memory-limit "$MEMORY"
    --local-directory "$LOCAL" --death-timeout 60 "${pages[@]}" "${encryption[@]}"
)
command="env DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true$(printf ' %q' "${worker[@]}")"  # as one line for a shell there
for host in $HOSTS; do
    # shellcheck disable=SC2086  # it may be a command with options
    $SSH "$host" "$command" </dev/null &
done

again=()
if [ -e "$MODEL.checkpoint" ]; then again=(--resume); fi
distboost train --scheduler-file "$file" --tls "$TLS" --wait-workers "$(wc -w <<<"$HOSTS")" --algorithm "${ALGORITHM:-gd-mcboost}" \
    --x "$X" --y "$Y" --model "$MODEL" --set scratch="$SHARED" "${again[@]}" "$@"
