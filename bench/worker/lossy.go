// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// look is how often the target of a lossy run looks for requests: what a round trip takes
// there, at most.
const look = 50 * time.Microsecond

// lossy measures as an initiator does, on a Pipe whose two ends lose packets: AF_XDP on
// veth passes by everything that could make the kernel lose some. One thread drives both
// ends, so that no core has to be shared.
func lossy(ctx context.Context, s *settings) error {
	client, server, err := xdpfab.Pipe(xdpfab.DomainAttr{Progress: fi.ProgressManual})
	if err != nil {
		return err
	}
	defer server.CloseAll()
	defer client.CloseAll()
	memory, err := mr.Alloc(s.size, mr.AllocOptions{})
	if err != nil {
		return err
	}
	defer memory.Close()
	if err := register(server, memory, s); err != nil {
		return err
	}
	if err := accept(server); err != nil {
		return err
	}
	s.peer = server.Name(0)
	rest := serve(server)
	defer func() { rest() }()
	in, err := newInitiator(ctx, client, s)
	if err != nil {
		return err
	}
	return in.run(ctx, func(ctx context.Context) error {
		rest()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		next := time.Duration(0)
		in.meanwhile = func() {
			if now := in.Now(); now >= next {
				next = now + look
				server.Progress()
			}
		}
		if err := setLoss(s.loss, client, server); err != nil {
			return err
		}
		if err := in.measure(ctx); err != nil {
			return err
		}
		rest = serve(server)
		return setLoss(0, client, server)
	})
}

// setLoss makes both ends lose a share of the packets that they send.
func setLoss(share float64, ends ...*xdpfab.Domain) error {
	for _, d := range ends {
		if err := d.SetFaults(xdpfab.Faults{Loss: share}); err != nil {
			return err
		}
	}
	return nil
}

// serve makes progress in the background, for calls that wait, until rest is called.
func serve(d *xdpfab.Domain) (rest func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				d.Progress()
				time.Sleep(look)
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
}
