// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// Bytes of a peer's region are read and written at any offset.
func ExamplePeer_Write() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, err := client.Dial(ctx, server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	region, err := peer.Lookup(ctx, "counters")
	if err != nil {
		log.Fatal(err)
	}
	text := []byte("written by a peer")
	back := make([]byte, len(text))
	if err := errors.Join(peer.Write(ctx, region, 100, text), peer.Read(ctx, region, 100, back)); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", back)

	section := io.NewSectionReader(xdpfab.BytesAt(ctx, peer, region), 108, 2)
	by, err := io.ReadAll(section)
	fmt.Printf("%s %v\n", by, err)
	// Output:
	// written by a peer
	// by <nil>
}
