// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Addresses are inserted, and a region is registered, while the program does something
// else; events tell of the end.
func ExampleEventQueue() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	events, err := client.Fabric().NewEventQueue(fi.EQAttr{})
	if err != nil {
		log.Fatal(err)
	}
	av, _ := client.NewAddressVector()
	if err := errors.Join(client.BindEQ(events), av.InsertAsync(ctx, []string{server.Name(0), "nobody"}, "peers")); err != nil {
		log.Fatal(err)
	}
	for done := false; !done; {
		if err := events.Wait(ctx); err != nil {
			log.Fatal(err)
		}
		e, ok, err := events.Read()
		if errors.Is(err, fi.ErrErrorPending) {
			e, ok = events.ReadErr()
		}
		switch {
		case !ok: // another goroutine was faster
		case e.Err != nil:
			fmt.Printf("%v of %v: address %d failed\n", e.Kind, e.Context, e.Data)
		default:
			fmt.Printf("%v of %v: %d inserted\n", e.Kind, e.Context, e.Data)
			done = true
		}
	}
	// Output:
	// av_complete of peers: address 1 failed
	// av_complete of peers: 1 inserted
}

// A completion queue beside other file descriptors in an epoll loop. The queue is read
// until TryWait says that it is safe to sleep.
func ExampleCompletionQueue_TryWait() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	av, _ := client.NewAddressVector()
	cq, _ := client.NewCompletionQueue(fi.CQAttr{Wait: fi.WaitFD})
	ep, _ := client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		log.Fatal(err)
	}
	dest, _ := av.Insert(ctx, server.Name(0))
	region, err := ep.Lookup(ctx, dest, "counters")
	if err != nil {
		log.Fatal(err)
	}

	fd, _ := cq.FD()
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		log.Fatal(err)
	}
	defer unix.Close(epoll)
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		log.Fatal(err)
	}

	for i := range 3 {
		m := &fi.Msg{Buf: make([]byte, 8), Dest: dest, Key: region.Key, Datatype: atomic.Uint64, Op: atomic.Sum, Context: i}
		if err := ep.Atomic(m, 0); err != nil {
			log.Fatal(err)
		}
	}
	var (
		events      [8]unix.EpollEvent
		completions [8]fi.Completion
	)
	for done := 0; done < 3; {
		if err := cq.TryWait(1); err == nil {
			if _, err := unix.EpollWait(epoll, events[:], -1); err != nil && !errors.Is(err, unix.EINTR) {
				log.Fatal(err)
			}
		} else if !errors.Is(err, fi.ErrAgain) {
			log.Fatal(err)
		}
		n, err := cq.Read(completions[:])
		if err != nil {
			log.Fatal(err)
		}
		for _, c := range completions[:n] {
			fmt.Println("completed:", c.Context)
		}
		done += n
	}
	// Output:
	// completed: 0
	// completed: 1
	// completed: 2
}
