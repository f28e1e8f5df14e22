// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package process tells what the kernel shows of another process, for messages that name
// it. What this user may not see is empty or 0.
package process

import (
	"bytes"
	"fmt"
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
	stat := read(pid, "stat")
	// The name before the state is in brackets, and may have brackets of its own.
	state := bytes.TrimLeft(stat[bytes.LastIndexByte(stat, ')')+1:], " ")
	return len(state) > 0 && (state[0] == 'T' || state[0] == 't')
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

// HolderOf returns a process that has a BPF link open, 0 if this user can see none.
func HolderOf(link uint32) int {
	if link == 0 {
		return 0
	}
	want := []byte(fmt.Sprintf("\nlink_id:\t%d\n", link))
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, f := range files {
		if to, _ := os.Readlink(f); !strings.HasPrefix(to, "anon_inode:bpf") {
			continue
		}
		folder, fd := filepath.Split(f)
		pid := filepath.Base(filepath.Dir(filepath.Clean(folder)))
		info, _ := os.ReadFile("/proc/" + pid + "/fdinfo/" + fd)
		if bytes.Contains(info, want) {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	return 0
}

// ListensAt lists the paths of the Unix sockets at which a process listens.
func ListensAt(pid int) (paths []string) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	var own []string
	for _, f := range files {
		to, _ := os.Readlink(f)
		if inode, is := strings.CutPrefix(to, "socket:["); is {
			own = append(own, strings.TrimSuffix(inode, "]"))
		}
	}
	for line := range strings.Lines(string(read(pid, "net/unix"))) {
		// Num RefCount Protocol Flags Type St Inode Path
		const accepts, inode, path = 3, 6, 7
		f := strings.Fields(line)
		if len(f) <= path || f[accepts] != "00010000" || !strings.HasPrefix(f[path], "/") {
			continue
		}
		if slices.Contains(own, f[inode]) {
			paths = append(paths, f[path])
		}
	}
	return paths
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
