// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package census lists everything that a run can leave behind on a machine:
// processes, network namespaces, links, BPF programs, maps and links. A census
// before and one after a run, compared with [Added], show every leak. It sees the
// whole machine, so the comparison means something only where nothing else is going
// on, as in a virtual machine of its own.
//
// It is for tests only, and needs root.
package census

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/xdpfab/xdpfab/internal/dump"
)

// Take lists what is there now, in no particular order. This process, kernel
// threads, and processes that ended are left out.
func Take() ([]string, error) {
	var all []string
	for _, part := range []func() ([]string, error){processes, namespaces, links, programs, maps, bpfLinks} {
		found, err := part()
		if err != nil {
			return nil, fmt.Errorf("census: %w", err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// Added lists the items that are in after and not in before.
func Added(before, after []string) (added []string) {
	for _, s := range after {
		if !slices.Contains(before, s) {
			added = append(added, s)
		}
	}
	return added
}

// state reads a process's state and parent from /proc/PID/stat, in which they
// follow the name, which stands in brackets and may contain anything.
func state(dir string) (name string, state byte, parent int, err error) {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return "", 0, 0, err
	}
	open, end := strings.IndexByte(string(b), '('), strings.LastIndexByte(string(b), ')')
	if open < 0 || end < open {
		return "", 0, 0, fmt.Errorf("%s/stat: %q", dir, b)
	}
	if _, err := fmt.Sscanf(string(b[end+1:]), " %c %d", &state, &parent); err != nil {
		return "", 0, 0, fmt.Errorf("%s/stat: %w", dir, err)
	}
	return string(b[open+1 : end]), state, parent, nil
}

const kthreadd = 2 // the parent of all kernel threads

func processes() (found []string, err error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		name, state, parent, err := state(dir)
		if err != nil || pid == os.Getpid() || pid == kthreadd || parent == kthreadd || state == 'Z' || state == 'X' {
			continue // not to be counted, or gone meanwhile
		}
		found = append(found, fmt.Sprintf("process %d %s", pid, name))
	}
	return found, nil
}

// Ended lists the children of a process that ended and wait for it to ask
// for their status.
func Ended(of int) (pids []int) {
	for _, pid := range children(of) {
		if _, state, parent, err := state("/proc/" + strconv.Itoa(pid)); err == nil && state == 'Z' && parent == of {
			pids = append(pids, pid)
		}
	}
	return pids
}

// children lists those of a process, of each of its threads. To read of all processes
// whose children they are takes a guest without KVM a tenth of a second.
func children(of int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	for _, list := range lists {
		b, _ := os.ReadFile(list) // a thread that has ended has none
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// namespaces lists the network namespaces that have a name or a process; those
// that only a file descriptor holds end with its process.
func namespaces() (found []string, err error) {
	named, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, n := range named {
		found = append(found, "network namespace /run/netns/"+n.Name())
	}
	held, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return nil, err
	}
	for _, path := range held {
		if ns, err := os.Readlink(path); err == nil {
			if s := "network namespace " + ns; !slices.Contains(found, s) {
				found = append(found, s)
			}
		}
	}
	return found, nil
}

// links lists the links of the caller's network namespace.
func links() (found []string, err error) {
	all, err := dump.Whole(netlink.LinkList)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		found = append(found, fmt.Sprintf("link %d %s", l.Attrs().Index, l.Attrs().Name))
	}
	return found, nil
}

func programs() (found []string, err error) {
	for id, err := ebpf.ProgramGetNextID(0); ; id, err = ebpf.ProgramGetNextID(id) {
		if err != nil {
			return found, unlessLast(err)
		}
		name := ""
		if p, err := ebpf.NewProgramFromID(id); err == nil {
			name = p.String()
			p.Close()
		}
		found = append(found, fmt.Sprintf("BPF program %d %s", id, name))
	}
}

func maps() (found []string, err error) {
	for id, err := ebpf.MapGetNextID(0); ; id, err = ebpf.MapGetNextID(id) {
		if err != nil {
			return found, unlessLast(err)
		}
		found = append(found, fmt.Sprintf("BPF map %d", id))
	}
}

func bpfLinks() (found []string, err error) {
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		found = append(found, fmt.Sprintf("BPF link %d", it.ID))
	}
	return found, it.Err()
}

// unlessLast is nil for the error that ends a list.
func unlessLast(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
