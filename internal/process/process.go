// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package process tells what the kernel shows of another process, for messages that name
// it. What this user may not see is empty or 0.
package process

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// Stopped reports whether a process was stopped, by a signal or by a debugger.
func Stopped(pid int) bool {
	state := bytes.TrimLeft(behindName(pid), " ")
	return len(state) > 0 && (state[0] == 'T' || state[0] == 't')
}

// behindName is what stands behind the name of a process in its state. The name is in
// brackets, and may have brackets of its own.
func behindName(pid int) []byte {
	stat := read(pid, "stat")
	return stat[bytes.LastIndexByte(stat, ')')+1:]
}

// Name is the name of the program that a process runs, or the beginning of it.
func Name(pid int) string {
	name := strings.TrimSpace(string(read(pid, "comm")))
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// Namespace identifies the network namespace of a process, as control.Namespace does that
// of this one.
func Namespace(pid int) uint64 {
	var st unix.Stat_t
	if pid == 0 || unix.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &st) != nil {
		return 0
	}
	return st.Ino
}

// HolderOf returns the process that has a BPF link, 0 if this user can see none. A
// process that only looks at the link, as one does that is about to open the interface,
// has it open for a moment, too: of several, the one in this network namespace that began
// first is meant.
func HolderOf(link uint32) int {
	if link == 0 {
		return 0
	}
	holders := holdersOf(link)
	here := Namespace(os.Getpid())
	slices.SortFunc(holders, func(a, b int) int {
		other := func(pid int) int {
			if Namespace(pid) == here {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(other(a), other(b)), cmp.Compare(began(a), began(b)), cmp.Compare(a, b))
	})
	if len(holders) == 0 {
		return 0
	}
	return holders[0]
}

// holdersOf lists the processes that have a BPF link open.
func holdersOf(link uint32) (pids []int) {
	want := []byte(fmt.Sprintf("\nlink_id:\t%d\n", link))
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, f := range files {
		if to, _ := os.Readlink(f); !strings.HasPrefix(to, "anon_inode:bpf") {
			continue
		}
		folder, fd := filepath.Split(f)
		pid := filepath.Base(filepath.Dir(filepath.Clean(folder)))
		info, _ := os.ReadFile("/proc/" + pid + "/fdinfo/" + fd)
		if n, _ := strconv.Atoi(pid); bytes.Contains(info, want) && !slices.Contains(pids, n) {
			pids = append(pids, n)
		}
	}
	return pids
}

// began is when a process began, in ticks since the machine did; the greatest time if it
// is not known.
func began(pid int) uint64 {
	const startTime = 19 // of the fields behind the name, from 0: see proc(5)
	fields := bytes.Fields(behindName(pid))
	if len(fields) <= startTime {
		return math.MaxUint64
	}
	n, err := strconv.ParseUint(string(fields[startTime]), 10, 64)
	if err != nil {
		return math.MaxUint64
	}
	return n
}

// LockHolder returns the process that has locked a file with flock(2), 0 if the kernel
// shows none.
func LockHolder(file *unix.Stat_t) (pid int) {
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	inode := fmt.Sprintf("%02x:%02x:%d", unix.Major(file.Dev), unix.Minor(file.Dev), file.Ino)
	for line := range strings.Lines(string(locks)) {
		if f := strings.Fields(line); len(f) > 5 && f[1] == "FLOCK" && f[5] == inode && f[4] != "0" {
			pid, _ = strconv.Atoi(f[4])
			return pid
		}
	}
	return 0
}

// ListensAt lists the paths of the Unix sockets at which a process listens, in the order
// of their descriptors, so as a rule the one that it made first comes first.
func ListensAt(pid int) (paths []string) {
	at := listening(pid)
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, f := range files {
		to, _ := os.Readlink(f)
		if path, is := at[to]; is {
			paths = append(paths, path)
		}
	}
	return paths
}

// listening are the paths of the Unix sockets in the network namespace of a process at
// which one listens, by the links of descriptors. Whoever removes a socket's file does
// not change that.
func listening(pid int) map[string]string {
	at := map[string]string{}
	for line := range strings.Lines(string(read(pid, "net/unix"))) {
		// Num RefCount Protocol Flags Type St Inode Path
		const accepts, inode, path = 3, 6, 7
		f := strings.Fields(line)
		if len(f) > path && f[accepts] == "00010000" && strings.HasPrefix(f[path], "/") {
			at["socket:["+f[inode]+"]"] = f[path]
		}
	}
	return at
}

// Listener is a Unix socket at which a process of this network namespace listens.
type Listener struct {
	Path string
	PID  int // 0 if this user may not see it
}

// ListenersAt lists the sockets whose paths match a pattern of filepath.Match.
func ListenersAt(pattern string) (found []Listener) {
	at := listening(os.Getpid())
	for link, path := range at {
		if is, _ := filepath.Match(pattern, path); !is {
			delete(at, link)
		}
	}
	if len(at) == 0 {
		return nil
	}
	holders := map[string]int{} // by link
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, f := range files {
		if link, _ := os.Readlink(f); at[link] != "" {
			holders[link], _ = strconv.Atoi(strings.Split(f, "/")[2])
		}
	}
	for link, path := range at {
		found = append(found, Listener{path, holders[link]})
	}
	slices.SortFunc(found, func(a, b Listener) int { return cmp.Compare(a.Path, b.Path) })
	return found
}

// HolderOfPort returns the process of this network namespace that has a UDP port of an
// address, 0 if there is none, or this user may not see it.
func HolderOfPort(at netip.AddrPort) int {
	links := boundTo(at)
	if len(links) == 0 {
		return 0
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, f := range files {
		if link, _ := os.Readlink(f); links[link] {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			return pid
		}
	}
	return 0
}

// HasPort reports whether a process of this network namespace has a UDP port of an
// address.
func HasPort(at netip.AddrPort) bool { return len(boundTo(at)) > 0 }

// boundTo are the UDP sockets of this thread's network namespace that are bound to an
// address, by the links of descriptors.
func boundTo(at netip.AddrPort) map[string]bool {
	file, want := "udp6", kernelHex(at)
	if at.Addr().Is4() {
		file = "udp"
	}
	list, err := os.ReadFile("/proc/thread-self/net/" + file)
	if err != nil {
		return nil
	}
	links := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		// sl local_address rem_address st tx:rx tr:tm->when retrnsmt uid timeout inode
		const local, inode = 1, 9
		if f := strings.Fields(line); len(f) > inode && f[local] == want {
			links["socket:["+f[inode]+"]"] = true
		}
	}
	return links
}

// kernelHex is an address as /proc/net has it: words of 32 bits in the byte order of the
// machine.
func kernelHex(at netip.AddrPort) string {
	var b strings.Builder
	for word := range slices.Chunk(at.Addr().AsSlice(), 4) {
		fmt.Fprintf(&b, "%08X", binary.NativeEndian.Uint32(word))
	}
	return fmt.Sprintf("%s:%04X", b.String(), at.Port())
}

// read reads a file that the kernel has about a process; nil if there is none.
func read(pid int, name string) []byte {
	if pid == 0 {
		return nil
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		return nil
	}
	return b
}
