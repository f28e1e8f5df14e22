// SPDX-License-Identifier: Apache-2.0

// Command step1 is the first limiter of docs/tutorial.md: one word, no failures.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/xdpfab/xdpfab/xdpfab"
)

func main() {
	if err := demo(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// demo admits ten requests by a quota of three.
func demo(ctx context.Context, w io.Writer) error {
	client, home, err := xdpfab.Pipe() // two nodes, and a cable in memory
	if err != nil {
		return err
	}
	defer home.CloseAll()
	defer client.CloseAll()

	limits, err := home.Serve("limits", 4096) // peers can dial from now on
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
		ok, err := allow(ctx, used, 3)
		if err != nil {
			return err
		}
		fmt.Fprint(w, ok, " ")
	}
	fmt.Fprintln(w)
	return nil
}

// allow counts a request, and reports whether it is among the first quota.
func allow(ctx context.Context, used xdpfab.Remote[uint64], quota uint64) (bool, error) {
	n, err := used.Add(ctx, 1)
	return err == nil && n <= quota, err
}
