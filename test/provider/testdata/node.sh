#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# node.sh ROOT NAME SOCKETS PROVIDER SHARED COMMAND...: a machine of its own for programs of
# MPI. Its caller has it in a network namespace, and in new ones of mounts, names, IPC and
# processes: the latter end with it. ROOT is its file system, in which /run/xdpfabd is the
# folder SOCKETS, /provider the folder PROVIDER, and /shared a folder that machines share. It
# runs COMMAND as user nobody.
set -eu

root=$1 sockets=$2 provider=$3 shared=$4 name=$5
shift 5
mount --make-rprivate /
hostname "$name"
mkdir -p "$root/run/xdpfabd" "$root/provider" "$root/shared"
touch "$root/etc/hosts" # which debootstrap does not make
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$sockets" "$root/run/xdpfabd"
mount --bind "$provider" "$root/provider"
mount --bind "$shared" "$root/shared"
mount --bind "$shared/hosts" "$root/etc/hosts"
# The first process of the machine, this one, keeps its rights: one that gave them up would not
# end with its parent.
chroot "$root" setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs \
	env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp LANG=C.UTF-8 FI_PROVIDER_PATH=/provider "$@"
