// SPDX-License-Identifier: Apache-2.0

package residence

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
)

// FolderError is the error of a folder of resident regions, which no other transport
// would need less.
type FolderError struct{ Err error }

// Error is that of the folder.
func (e *FolderError) Error() string { return e.Err.Error() }

// Unwrap returns it.
func (e *FolderError) Unwrap() error { return e.Err }

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
