// SPDX-License-Identifier: Apache-2.0

package residence

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
)

// Open opens an interface, with the store of what is resident there: as a process before
// has left it in a folder, if there is a path of one.
func Open(ctx context.Context, ifname, path string, o port.Options) (node.Device, *Store, error) {
	if path != "" {
		return openStored(ctx, ifname, path, o)
	}
	i, err := port.Open(ctx, ifname, o)
	if err != nil {
		return nil, nil, err
	}
	return node.NetInterface{Interface: i}, nil, nil
}

// explain says what is to be done about state that cannot be taken back. Any other reason
// leaves it alone.
func (h *Store) explain(err error) error {
	remedy := fmt.Sprintf("to begin anew, end it with `xdpfab resident remove %s`", h.Path)
	switch {
	case !errors.As(err, new(*port.UnfitError)), errors.Is(err, port.ErrEnded):
		return err
	case errors.Is(err, port.ErrOtherInterface):
		remedy = "name another folder for this interface"
	}
	return fmt.Errorf("what a former process has left in %s cannot be taken back: %w; %s", h.Path, err, remedy)
}
