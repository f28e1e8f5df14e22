// SPDX-License-Identifier: Apache-2.0

// Command counter increments a word on another node, and reports how exact the result is.
// Any number of counters can run at a time: no increment is lost, and none counts twice.
//
//	counter                   both nodes in this process, joined in memory
//	counter -i eth0 -serve    the node with the counter
//	counter -i eth0 PEER      a node that counts there
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

var (
	ifname   = flag.String("i", "", "network interface; without it both nodes are in this process")
	serves   = flag.Bool("serve", false, "be the node with the counter")
	giveUp   = flag.Duration("timeout", 5*time.Second, "silence of the other node after which it is given up")
	times    = flag.Int("n", 10_000, "how many times to increment the counter")
	patience = flag.Duration("patience", time.Second, "how long to wait for each answer")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := start(ctx, flag.Arg(0))
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func start(ctx context.Context, home string) error {
	if *ifname == "" {
		return inMemory(ctx)
	}
	dom, err := xdpfab.Open(ctx, *ifname, xdpfab.DomainAttr{Transport: xdpfab.TransportAuto, GiveUp: *giveUp})
	if err != nil {
		return err
	}
	defer dom.CloseAll()
	if *serves {
		return serve(ctx, dom)
	}
	return run(ctx, dom, home)
}

// serve has the counter in its memory until the context ends, or the interface is lost.
func serve(ctx context.Context, dom *xdpfab.Domain) error {
	service, err := dom.Serve("counters", 4096)
	if err != nil {
		return err
	}
	fmt.Println("serving at", service.Name())
	select {
	case <-ctx.Done():
		return nil
	case <-dom.Done():
		return dom.Err()
	}
}

func inMemory(ctx context.Context) error {
	client, server, err := xdpfab.Pipe()
	if err != nil {
		return err
	}
	defer server.CloseAll()
	defer client.CloseAll()
	service, err := server.Serve("counters", 4096)
	if err != nil {
		return err
	}
	return run(ctx, client, service.Name())
}

func run(ctx context.Context, dom *xdpfab.Domain, home string) error {
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	// This counter may start from 0 when its node restarts, so the handle may rebind.
	hits, err := xdpfab.Word[uint64](ctx, peer, "counters", 0, xdpfab.AutoRebind())
	if err != nil {
		return err
	}
	var unknown, gone int
	for range *times {
		_, err := count(ctx, hits)
		switch {
		case errors.Is(err, xdpfab.ErrOutcomeUnknown):
			unknown++ // it may have been counted
		case errors.Is(err, xdpfab.ErrPeerRestarted):
			gone++ // the counter started from 0, with this increment or without it
		case err != nil:
			return err
		}
	}
	n, err := hits.Load(ctx)
	fmt.Printf("counted %d times: %d certain, %d unknown, %d lost in a restart; the counter is at %d\n",
		*times, *times-unknown-gone, unknown, gone, n)
	return err
}

// count adds 1 and returns the new value. If the error wraps ErrOutcomeUnknown or
// ErrPeerRestarted, but not ErrNotExecuted, the increment may have been counted.
func count(ctx context.Context, hits xdpfab.Remote[uint64]) (n uint64, err error) {
	for range 3 {
		call, cancel := context.WithTimeout(ctx, *patience)
		n, err = hits.Add(call, 1)
		cancel()
		// The answer is late, or lost. Most outcomes become known when the path heals.
		if n, err = xdpfab.Settle(ctx, n, err); !errors.Is(err, xdpfab.ErrNotExecuted) {
			return n, err
		}
		// It never ran and never will, so another attempt counts nothing twice.
	}
	return n, err
}
