// SPDX-License-Identifier: Apache-2.0

// Package start is what most examples have in common: their flags, and the nodes that
// they run on. A copy of an example can import it. Example counter has the same in its
// own file, for programs that should not.
//
//	lock                   both nodes in this process, joined in memory
//	lock -i eth0 -serve    the node with the memory
//	lock -i eth0 PEER      a node that uses it
//
// In place of the second line xdpfabd can serve a region of that name. If a daemon serves
// the interface, programs go through it (XDPFAB_CONTROL names another socket). Without a
// daemon they use AF_XDP, or UDP sockets where they may not.
package start

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// Home gives a node what the others use, and returns the address for them to dial.
type Home func(ctx context.Context, dom *xdpfab.Domain) (addr string, err error)

// Run is what a node does that uses the home at an address.
type Run func(ctx context.Context, dom *xdpfab.Domain, home string) error

// Region returns a Home that serves memory.
func Region(name string, size int) Home {
	return func(_ context.Context, dom *xdpfab.Domain) (string, error) {
		s, err := dom.Serve(name, size)
		if err != nil {
			return "", err
		}
		return s.Name(), nil
	}
}

// Main is the main function of an example.
func Main(home Home, run Run) {
	ifname := flag.String("i", "", "network interface; without it both nodes are in this process")
	serve := flag.Bool("serve", false, "be the node that the others use")
	giveUp := flag.Duration("timeout", 5*time.Second, "silence of the other node after which operations are given up")
	flag.Usage = usage
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	attr := xdpfab.DomainAttr{Transport: xdpfab.TransportAuto, GiveUp: *giveUp}
	err := start(ctx, *ifname, attr, *serve, home, run)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintf(os.Stderr, "usage: %s [-i INTERFACE [-serve | PEER]]\n", os.Args[0])
	flag.PrintDefaults()
}

func start(ctx context.Context, ifname string, attr xdpfab.DomainAttr, serve bool, home Home, run Run) error {
	switch {
	case ifname == "":
		return InMemory(ctx, home, run)
	case !serve && flag.Arg(0) == "":
		return errors.New("missing the address of the home: want -serve, or PEER behind the flags")
	}
	dom, err := xdpfab.Open(ctx, ifname, attr)
	if err != nil {
		return err
	}
	if serve {
		err = wait(ctx, dom, home)
	} else {
		err = run(ctx, dom, flag.Arg(0))
	}
	return errors.Join(err, dom.CloseAll())
}

// wait serves until the context ends, or the interface is lost.
func wait(ctx context.Context, dom *xdpfab.Domain, home Home) error {
	addr, err := home(ctx, dom)
	if err != nil {
		return err
	}
	fmt.Println("serving at", addr)
	select {
	case <-ctx.Done():
		return nil
	case <-dom.Done():
		return dom.Err()
	}
}

// InMemory runs an example on two domains that are joined in memory.
func InMemory(ctx context.Context, home Home, run Run) error {
	client, server, err := xdpfab.Pipe()
	if err != nil {
		return err
	}
	addr, err := home(ctx, server)
	if err == nil {
		err = run(ctx, client, addr)
	}
	return errors.Join(err, client.CloseAll(), server.CloseAll())
}
