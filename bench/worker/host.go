// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/internal/control"
	hostpkg "github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// host serves programs that attach at the control socket to the interface of another
// namespace, and is their target on its own one: one thread makes progress for both,
// since a third one that polls would need a third core. Each program has a region,
// bench0, bench1 and so on, so that it can check what it has added.
func host(ctx context.Context, target *xdpfab.Domain, s *settings) error {
	ctx, cancel := context.WithTimeout(ctx, targetLimit)
	defer cancel()
	memory, err := mr.Alloc(s.size*s.count, mr.AllocOptions{})
	if err != nil {
		return err
	}
	defer memory.Close()
	for i := range s.count {
		o := mr.Options{Name: fmt.Sprint("bench", i), Access: mr.RemoteRead | mr.RemoteWrite, Offset: i * s.size,
			Length: s.size}
		if _, err := target.Register(memory, o); err != nil {
			return err
		}
	}
	if err := accept(target); err != nil {
		return err
	}
	runtime.LockOSThread()
	guests, err := s.openElsewhere(ctx)
	if err != nil {
		return err
	}
	l, err := control.Listen(ctx, s.control, control.Access{})
	if err != nil {
		return errors.Join(err, guests.Close())
	}
	ended := make(chan error, 1)
	go func() {
		ended <- control.ServeListener(ctx, l, control.Service{
			Source: func() (control.Status, error) { return control.Status{}, errors.New("no daemon") },
			Admit:  func(context.Context, control.Program) (control.Place, error) { return place{guests}, nil },
		})
	}()
	fmt.Println(measure.Ready, target.Name(0))
	go measure.TellMallocs(os.Stdin, os.Stdout)
	for ctx.Err() == nil {
		for range 1024 {
			guests.Node().Progress()
			target.Progress()
		}
		runtime.Gosched() // for the goroutines that serve the socket: there may be one core
	}
	for { // guests leave with the help of this thread
		select {
		case err := <-ended:
			return errors.Join(err, guests.Close())
		default:
			guests.Node().Progress()
			runtime.Gosched()
		}
	}
}

// place is where any program is hosted.
type place struct{ host *hostpkg.Host }

func (p place) Host(c *net.UnixConn) {
	if err := p.host.Serve(c, hostpkg.GuestLimits{}); err != nil {
		fmt.Fprintln(os.Stderr, "worker: program turned out:", err)
	}
}

func (place) Leave() {}

// accept makes the endpoint of a target.
func accept(dom *xdpfab.Domain) error {
	ep, err := dom.NewEndpoint(xdpfab.EndpointAttr{})
	if err != nil {
		return err
	}
	return ep.Enable()
}

// openElsewhere opens the interface of the same name in the namespace that a flag names.
// This thread is locked, and comes back.
func (s *settings) openElsewhere(ctx context.Context) (*hostpkg.Host, error) {
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(own)
	other, err := unix.Open(filepath.Join("/run/netns", s.netns), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("namespace %q: %w", s.netns, err)
	}
	defer unix.Close(other)
	if err := unix.Setns(other, unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("namespace %s: %w", s.netns, err)
	}
	h, err := hostpkg.Open(ctx, s.ifname,
		hostpkg.Options{Config: node.Config{Manual: s.progress == fi.ProgressManual}})
	if back := unix.Setns(own, unix.CLONE_NEWNET); back != nil {
		return nil, errors.Join(err, back)
	}
	return h, err
}
