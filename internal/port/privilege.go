// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// privilege is a capability that Open cannot do without.
type privilege struct {
	bit  uint
	name string
	why  string
	or   uint // another one that the kernel accepts in its place; the bit itself if none
}

var privileges = []privilege{
	{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", "to attach the XDP program", unix.CAP_NET_ADMIN},
	{unix.CAP_NET_RAW, "CAP_NET_RAW", "for AF_XDP sockets", unix.CAP_NET_RAW},
	{unix.CAP_BPF, "CAP_BPF", "to load the XDP program", unix.CAP_SYS_ADMIN},
	{unix.CAP_PERFMON, "CAP_PERFMON", "for the program's arithmetic with packet pointers", unix.CAP_SYS_ADMIN},
}

var lockMemory = privilege{unix.CAP_IPC_LOCK, "CAP_IPC_LOCK", "", unix.CAP_IPC_LOCK}

// checkPrivileges names everything that this thread lacks, in one go, before
// anything is touched. pinned is the packet memory in bytes, which counts against
// RLIMIT_MEMLOCK.
//
// A kernel before 5.8 has no CAP_BPF and fails in the loader instead, which
// then says so; all of them together are still not enough in a user namespace.
func checkPrivileges(pinned uint64) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // low and high 32 bits
	if err := unix.Capget(&hdr, &sets[0]); err != nil {
		return fmt.Errorf("port: reading the capabilities: %w", err)
	}
	// The remedy names everything that is needed: setcap replaces what was there.
	has := func(bit uint) bool { return sets[bit/32].Effective&(1<<(bit%32)) != 0 }
	want := privileges
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err == nil && limit.Cur < pinned {
		p := lockMemory
		p.why = fmt.Sprintf("to pin %d KiB of packet memory, or `ulimit -l %d`", pinned>>10, pinned>>10)
		want = append(want[:len(want):len(want)], p)
	}
	var missing, caps []string
	for _, p := range want {
		caps = append(caps, strings.ToLower(p.name))
		if !has(p.bit) && !has(p.or) {
			missing = append(missing, p.name+" ("+p.why+")")
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("port: missing %s: run as root, or `setcap %s+ep` on the program: %w",
		strings.Join(missing, ", "), strings.Join(caps, ","), fs.ErrPermission)
}
