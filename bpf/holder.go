// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"bufio"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Takes reports whether the program is one of this package, and takes UDP packets to one
// of some addresses: the kernel's own sockets get none of them, whether the program's
// process lives or not. Looking takes CAP_SYS_ADMIN; without, the error matches
// fs.ErrPermission.
func (e *BusyError) Takes(addrs []netip.Addr) (bool, error) {
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(e.ProgramID))
	if err != nil {
		return false, explain(fmt.Sprintf("looking at program %d", e.ProgramID), err)
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return false, explain(fmt.Sprintf("looking at program %d", e.ProgramID), err)
	}
	if info.Name != steerProgXdpfabSteer {
		return false, nil
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		if takes, err := servedIn(id, addrs); takes || err != nil {
			return takes, err
		}
	}
	return false, nil
}

// servedIn reports whether a map is that of addresses, and has one of some.
func servedIn(id ebpf.MapID, addrs []netip.Addr) (bool, error) {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return false, explain(fmt.Sprintf("looking at map %d", id), err)
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		return false, explain(fmt.Sprintf("looking at map %d", id), err)
	}
	if info.Name != steerMapServed {
		return false, nil
	}
	var is uint8
	for _, a := range addrs {
		if m.Lookup(address(a.As16()), &is) == nil {
			return true, nil
		}
	}
	return false, nil
}

// Folder returns where the program's link is pinned (Program.Pin), so that it stays
// without its process; empty if that is nowhere, or where this process cannot look.
func (e *BusyError) Folder() string {
	f, err := os.Open("/proc/thread-self/mounts")
	if err != nil || e.LinkID == 0 {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// the device, where it is mounted, and the kind of file system
		mount := strings.Fields(lines.Text())
		if len(mount) < 3 || mount[2] != "bpf" {
			continue
		}
		if at := pinnedBelow(unescaped.Replace(mount[1]), e.LinkID); at != "" {
			return at
		}
	}
	return ""
}

// unescaped has the bytes that the kernel escapes in the paths of mounts: proc(5).
var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// pinnedBelow looks below a folder for one where a link is pinned.
func pinnedBelow(root string, id uint32) (at string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != pinnedLink {
			return nil // also what cannot be looked at
		}
		l, err := link.LoadPinnedLink(path, nil)
		if err != nil {
			return nil
		}
		defer l.Close()
		if info, err := l.Info(); err == nil && uint32(info.ID) == id {
			at = filepath.Dir(path)
			return fs.SkipAll
		}
		return nil
	})
	return at
}
