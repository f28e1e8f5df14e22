// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"errors"
)

// ErrReplaced is the cause (context.WithCancelCause) with which an announcement ends when
// another process on the node goes on with it: the entry stays.
var ErrReplaced = errors.New("another process goes on with this node's entry")

// Announcer is a source to which nodes announce themselves.
type Announcer interface {
	// Announce keeps the entry of one node: the last one that came over updates, of
	// which each passes Check and has the same name. It returns when ctx ends, with
	// its error, and the entry is removed then, unless the cause is ErrReplaced. An
	// entry whose process dies is removed after a time of the source's.
	Announce(ctx context.Context, updates <-chan Node) error
}
