// SPDX-License-Identifier: Apache-2.0

// Command step7 is the limiter of docs/tutorial.md on real nodes.
//
//	step7 eth0             the home
//	step7 eth0 10.0.0.2    a program that asks the home at this address
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
	xsync "github.com/xdpfab/xdpfab/xdpfab/sync"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: step7 INTERFACE [ADDRESS OF THE HOME]")
	}
	dom, err := xdpfab.Open(ctx, args[0], xdpfab.DomainAttr{Transport: xdpfab.TransportAuto})
	if err != nil {
		return err // it says what is missing, and what to do
	}
	defer dom.CloseAll()
	if len(args) == 1 {
		return serve(ctx, dom, os.Stdout)
	}
	return ask(ctx, dom, args[1], os.Stdout)
}

// serve is the home, until the context ends or the interface is lost.
func serve(ctx context.Context, dom *xdpfab.Domain, w io.Writer) error {
	limits, err := dom.Serve("limits", 4096) // peers can dial from now on
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "serving at", limits.Name())
	select {
	case <-ctx.Done():
		return nil
	case <-dom.Done():
		return dom.Err()
	}
}

// ask makes ten requests of a customer with a quota of three in each hour.
func ask(ctx context.Context, dom *xdpfab.Domain, home string, w io.Writer) error {
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	l, err := xsync.NewLimiter(ctx, xsync.Place{Home: peer, Region: "limits"}, 500, 3, time.Hour)
	if err != nil {
		return err
	}
	for range 10 {
		ok, err := l.Allow(ctx, "a", 1)
		if err != nil {
			return err
		}
		fmt.Fprint(w, ok, " ")
	}
	fmt.Fprintln(w)
	return nil
}
