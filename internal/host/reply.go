// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"fmt"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
)

// read reads the arguments of a call.
func read(args json.RawMessage, to any) error {
	if err := json.Unmarshal(args, to); err != nil {
		return fmt.Errorf("arguments of the call: %w: %w", err, syscall.EINVAL)
	}
	return nil
}

// wantFile reports that a call did not bring the one file descriptor that it takes.
func wantFile(n int, what string) error {
	return fmt.Errorf("%d file descriptors: want the memfd of %s: %w", n, what, syscall.EINVAL)
}

// failure is the reply to a call that failed; ID 0 turns the program out.
func failure(id uint64, err error) share.Reply {
	code, _ := errno.Of(err)
	return share.Reply{ID: id, Error: err.Error(), Errno: code, Kinds: node.KindsOf(err)}
}
