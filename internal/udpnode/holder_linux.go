// SPDX-License-Identifier: Apache-2.0

package udpnode

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/udpport"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// holder returns the process that has the port of an address which is in use, 0 if this
// user may not see it.
func holder(err error) int {
	taken, is := errors.AsType[*udpport.InUseError](err)
	if !is {
		return 0
	}
	return process.HolderOfPort(netip.AddrPortFrom(taken.At, wire.UDPPort))
}

// whoHas names a process that is in the way, and has the remedy.
func whoHas(pid int) string {
	if pid == os.Getpid() {
		return "another domain of this process: close that one, or use it here"
	}
	name := process.Name(pid)
	who := fmt.Sprintf("process %d (%s)", pid, name)
	if sockets := process.ListensAt(pid); len(sockets) > 0 && name == "xdpfabd" {
		return fmt.Sprintf("%s: go through it by its control socket, %s (--control, XDPFAB_CONTROL, "+
			"DomainAttr.Control)", who, sockets[0])
	}
	return who + ": end it, or run xdpfabd in its place and let both go through that; or use another address of this " +
		"node"
}
