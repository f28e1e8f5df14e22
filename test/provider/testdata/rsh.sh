#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# rsh.sh serve: runs each line that is written to the pipe of this machine.
# rsh.sh [-OPTION...] MACHINE COMMAND...: has another machine run a command, and prints what it
# prints. So launchers of MPI take it for ssh.
set -eu

if [ "$1" = serve ]; then
	pipe=/shared/$(hostname)
	mkfifo "$pipe"
	exec 3<>"$pipe"
	while read -r line <&3; do
		sh -c "$line" &
	done
	exit
fi
while [ "${1#-}" != "$1" ]; do
	shift
done
pipe=/shared/$1 said=$(mktemp -u /shared/said.XXXXXX)
shift
mkfifo "$said"
echo "( $* ) </dev/null >$said 2>&1" >"$pipe"
cat "$said"
rm "$said"
