// SPDX-License-Identifier: Apache-2.0

package udpnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// An XDP program can stay on the interface when its process has ended: what is resident
// goes on being served (DomainAttr.ResidentPin). If it was opened with UDP, it goes on
// taking the packets to the interface's addresses, too, and UDP sockets there hear
// nothing. No socket keeps the addresses then, so that binding succeeds.

// passing is how long a program is waited for whose link is pinned nowhere: its process
// has just ended, and the kernel detaches it once nobody looks at its link.
const passing = 3 * time.Second

// hears returns an error if an XDP program takes the packets to some addresses of an
// interface. beside describes a program that may do so, for all that this process is
// allowed to know.
func hears(ctx context.Context, name string, index int, addrs []netip.Addr) (beside string,
	err error) {
	for end := time.Now().Add(passing); ; {
		program, err := bpf.Holder(name, index)
		if err != nil {
			return fmt.Sprintf("whether %s has an XDP program that takes the packets is unknown: %v", name, err), nil
		}
		if program == nil {
			return "", nil
		}
		takes, err := program.Takes(addrs)
		if errors.Is(err, fs.ErrNotExist) && time.Now().Before(end) {
			continue // it was detached meanwhile
		}
		if err != nil {
			return fmt.Sprintf("%s has an XDP program, number %d, and this process may not know whether that takes "+
				"the packets: if no peer is heard, see `xdpfab resident list` as root: %v", name,
				program.ProgramID, err), nil
		}
		if !takes {
			return "", nil
		}
		state := program.Folder()
		if state == "" && time.Now().Before(end) {
			select {
			case <-ctx.Done():
				return "", context.Cause(ctx)
			case <-time.After(passing / 100):
			}
			continue
		}
		return "", deaf(program, state, share.DefaultControl(name))
	}
}

// deaf is the refusal of an interface whose packets a program takes. It advises nothing
// that could take the program away from a live process. state is where the program's link
// is pinned: a subfolder, named after the state's version, of the folder that --pin and
// `xdpfab resident` take. socket is where the interface's daemon has its control socket,
// if there is one.
func deaf(program *bpf.BusyError, state, socket string) error {
	left := fmt.Errorf("udp: %s: XDP program %d takes the packets to UDP port %d, which sockets would never see",
		program.Interface, program.ProgramID, wire.UDPPort)
	if state != "" {
		folder := filepath.Dir(state)
		return fmt.Errorf("%w: a process that has ended has left it, with resident regions; end it with `xdpfab "+
			"resident remove %s`, or take it back with AF_XDP: xdpfabd --transport xdp --pin %s: %w", left, folder,
			folder, errno.Busy)
	}
	keeper := "a process that has ended may have left it, with resident regions: `xdpfab resident list` may show its " +
		"folder"
	if program.LinkID != 0 {
		keeper += fmt.Sprintf(", and `bpftool -f link show id %d` the processes and the files that keep it",
			program.LinkID)
	}
	if _, err := os.Lstat(socket); err == nil {
		return errno.Refuse(errno.Busy,
			"%w: xdpfabd may have it, whose control socket is %s: use that daemon, or stop it first; if "+
				"none is alive there, %s", left, socket, keeper)
	}
	return fmt.Errorf("%w: %s: %w", left, keeper, errno.Busy)
}
