// SPDX-License-Identifier: Apache-2.0

// Command doorbell writes records into the memory of another node, and rings a doorbell:
// a word there changes when a record is complete. The owner sleeps until it changes.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/xdpfab/xdpfab/examples/start"
	"github.com/xdpfab/xdpfab/xdpfab"
)

var records = flag.Int("n", 1000, "how many records to write")

func main() { start.Main(home, run) }

// home owns the memory and reads the records.
func home(ctx context.Context, dom *xdpfab.Domain) (addr string, err error) {
	s, err := dom.Serve("inbox", size)
	if err != nil {
		return "", err
	}
	// consume returns when the context or the domain ends.
	go func() { _ = consume(ctx, dom, s.Region, func([]byte) {}) }()
	return s.Name(), nil
}

func run(ctx context.Context, dom *xdpfab.Domain, home string) error {
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	p := producer{peer: peer}
	if err := p.find(ctx); err != nil {
		return err
	}
	for i := range *records {
		if err := p.put(ctx, fmt.Appendf(nil, "record %d", i)); err != nil {
			return err
		}
	}
	if err := p.room(ctx, 1); err != nil { // wait until all are read
		return err
	}
	fmt.Printf("%d records written and read; the doorbell is at %d\n", *records, p.written)
	return nil
}
