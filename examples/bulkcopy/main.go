// SPDX-License-Identifier: Apache-2.0

// Command bulkcopy copies a file into memory of another node, and reads it back. An
// interrupted copy continues where it stopped.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"

	"github.com/xdpfab/xdpfab/examples/start"
	"github.com/xdpfab/xdpfab/xdpfab"
)

var file = flag.String("file", "", "file to copy; without it, 4 MiB of random bytes")

func main() { start.Main(start.Region("bulk", size), run) }

func run(ctx context.Context, dom *xdpfab.Domain, home string) (err error) {
	data := make([]byte, 4<<20)
	if *file == "" {
		_, _ = rand.Read(data)
	} else if data, err = os.ReadFile(*file); err != nil {
		return err
	}
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	if err := send(ctx, peer, data); err != nil {
		return err
	}
	back, err := fetch(ctx, peer)
	if err == nil && !bytes.Equal(back, data) {
		err = errNothing // another program is copying, too
	}
	fmt.Printf("%d bytes written, %d read back\n", len(data), len(back))
	return err
}
