// SPDX-License-Identifier: Apache-2.0

// Package step1 is the first limiter of docs/tutorial.md: one word, no failures.
package step1

import (
	"context"
	"fmt"
	"io"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// Demo admits ten requests by a quota of three.
func Demo(ctx context.Context, w io.Writer) error {
	client, home, err := xdpfab.Pipe() // two nodes, and a cable in memory
	if err != nil {
		return err
	}
	defer home.CloseAll()
	defer client.CloseAll()

	limits, err := home.Serve("limits", 4096) // the node with the memory: all that it does
	if err != nil {
		return err
	}
	peer, err := client.Dial(ctx, limits.Name())
	if err != nil {
		return err
	}
	used, err := xdpfab.Word[uint64](ctx, peer, "limits", 0)
	if err != nil {
		return err
	}
	for range 10 {
		ok, err := Allow(ctx, used, 3)
		if err != nil {
			return err
		}
		fmt.Fprint(w, ok, " ")
	}
	return nil
}

// Allow counts a request, and reports whether it is among the first quota.
func Allow(ctx context.Context, used xdpfab.Remote[uint64], quota uint64) (bool, error) {
	n, err := used.Add(ctx, 1)
	return n <= quota, err
}
