// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"slices"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/mr"
)

// GuestErrors are the errors that programs look for, with their names in a Reply.
var GuestErrors = map[string]error{
	"busy": errno.Busy, "closed": errno.Closed, "not implemented": errno.NotImplemented, "access": errno.Access,
	"denied": errno.Denied, "peer silent": errno.PeerSilent,
	"not kept": errno.NotKept, "key in use": mr.ErrKeyInUse, "name in use": mr.ErrNameInUse, "auth key": errno.AuthKey,
	"lost": errno.InterfaceLost, "memory": mr.ErrMemory,
	"unreachable": port.ErrUnreachable, "no route": port.ErrNoRoute, "no source": port.ErrNoSource,
	"no udp": port.ErrNoUDP,
}

// KindsOf names the errors that err wraps.
func KindsOf(err error) (kinds []string) {
	for kind, e := range GuestErrors {
		if errors.Is(err, e) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}
