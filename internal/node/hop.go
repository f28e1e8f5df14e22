// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/port"
)

// ErrHopSilent is the cause when a search for the next hop ends before its own limit. It
// matches port.ErrUnreachable, as it does for programs behind a daemon.
var ErrHopSilent = errno.Refuse(port.ErrUnreachable, "no answer within the give-up time from the next hop")

// HopError adds to the error of the search for a next hop what it means for a peer.
func HopError(err error) error {
	switch {
	case errors.Is(err, errno.PeerSilent): // it says so
	case errors.Is(err, port.ErrUnreachable):
		return fmt.Errorf("%w: %w", errno.PeerSilent, err)
	}
	return err
}
