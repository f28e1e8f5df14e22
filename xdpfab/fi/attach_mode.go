// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"os"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
)

// AttachMode says whether a domain goes through the daemon that has the interface.
type AttachMode uint8

// The modes.
const (
	AttachAuto   AttachMode = iota // through the daemon, if one serves the interface
	AttachNever                    // the domain opens the interface itself
	AttachAlways                   // through the daemon, or not at all
)

// String returns the mode as a word.
func (m AttachMode) String() string {
	switch m {
	case AttachAuto:
		return "auto"
	case AttachNever:
		return "never"
	case AttachAlways:
		return "always"
	}
	return fmt.Sprintf("AttachMode(%d)", uint8(m))
}

// MarshalText implements encoding.TextMarshaler.
func (m AttachMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// ErrNoDaemon means that no daemon serves the interface, or none that this program can
// reach.
var ErrNoDaemon = errno.NoDaemon

// ErrHostLost means that the daemon through which the domain uses the interface has
// ended. The domain attaches to the next one by itself.
var ErrHostLost = errno.HostLost

// ControlEnv is the environment variable that names the control socket of the daemon, if
// DomainAttr.Control does not.
const ControlEnv = "XDPFAB_CONTROL"

// DefaultControl is where the daemon of an interface has its control socket.
func DefaultControl(ifname string) string { return share.DefaultControl(ifname) }

// control returns the path of the daemon's socket, and whether the caller has chosen it.
func (a *DomainAttr) control(ifname string) (path string, chosen bool) {
	if a.Control != "" {
		return a.Control, true
	}
	if path := os.Getenv(ControlEnv); path != "" {
		return path, true
	}
	return DefaultControl(ifname), false
}
