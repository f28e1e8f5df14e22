// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// watchPause is how long to wait before asking the kernel again after losing its
// notifications.
const watchPause = time.Second

// linkState is what matters of an interface.
type linkState struct {
	name string
	mac  string
	mtu  int  // bytes
	up   bool // by the administrator, and with a carrier
}

// watch follows the interface until ctx ends. It returns an error when the
// interface cannot serve any more: it is gone, or peers look for it under an
// address that it has no longer. Being down is logged only, for it passes: the
// sockets stay bound, and peers send again.
func watch(ctx context.Context, info xdpfab.InterfaceInfo, log *slog.Logger) error {
	if info.Index == 0 { // a domain without an interface: xdpfab.Pipe
		<-ctx.Done()
		return nil
	}
	seen := linkState{name: info.Name, mac: info.MAC, mtu: info.MTU, up: true}
	for ctx.Err() == nil {
		err := follow(ctx, info.Index, &seen, log)
		if errors.As(err, new(*lostError)) {
			return err
		}
		if err != nil {
			log.Warn("watching the interface was interrupted", "interface", seen.name, "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(watchPause):
			}
		}
	}
	return nil
}

// lostError is a change of the interface that cannot be served through.
type lostError struct{ text string }

func (e *lostError) Error() string { return e.text }

// follow subscribes to notifications and judges the interface at each. It returns
// nil when ctx ends.
func follow(ctx context.Context, index int, seen *linkState, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	updates := make(chan netlink.LinkUpdate, 16)
	var failed error // written before updates is closed
	err := netlink.LinkSubscribeWithOptions(updates, ctx.Done(), netlink.LinkSubscribeOptions{
		ErrorCallback: func(err error) { failed = err },
	})
	if err != nil {
		return fmt.Errorf("subscribe to link changes: %w", err)
	}
	defer func() { // the subscription's goroutine may be sending
		cancel()
		for range updates {
		}
	}()
	// First what happened before the subscription, then what comes.
	if err := look(index, seen, log); err != nil {
		return err
	}
	for u := range updates {
		if int(u.Index) != index {
			continue
		}
		// The notification is only the occasion: a bridge, for example, says that
		// its port is deleted when the interface merely leaves it.
		if err := look(index, seen, log); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("link changes were lost: %w", failed)
}

// look asks the kernel for the interface and logs what changed.
func look(index int, seen *linkState, log *slog.Logger) error {
	link, err := netlink.LinkByIndex(index)
	if gone := new(netlink.LinkNotFoundError); errors.As(err, gone) || errors.Is(err, unix.ENODEV) {
		return &lostError{fmt.Sprintf("interface %s is gone, removed or moved to another network namespace; "+
			"start again when it is back", seen.name)}
	}
	if err != nil {
		return fmt.Errorf("look at interface %s: %w", seen.name, err)
	}
	a := link.Attrs()
	carrier := a.OperState == netlink.OperUp || a.OperState == netlink.OperUnknown
	return seen.judge(linkState{name: a.Name, mac: a.HardwareAddr.String(), mtu: a.MTU, up: a.Flags&net.FlagUp != 0 && carrier}, log)
}

// judge compares with what was seen before.
func (s *linkState) judge(now linkState, log *slog.Logger) error {
	was := *s
	*s = now
	if now.mac != was.mac {
		return &lostError{fmt.Sprintf("interface %s changed its hardware address from %s to %s, by which peers know it; "+
			"start again to serve under the new one", now.name, was.mac, now.mac)}
	}
	if now.mtu < was.mtu {
		return &lostError{fmt.Sprintf("interface %s had an MTU of %d bytes and has %d now: frames as agreed with peers would be lost; "+
			"start again to serve with the new one", now.name, was.mtu, now.mtu)}
	}
	if now.name != was.name {
		log.Info("the interface was renamed", "from", was.name, "to", now.name)
	}
	switch {
	case was.up && !now.up:
		log.Warn("the interface is down; peers wait, or give up after their give-up time", "interface", now.name)
	case !was.up && now.up:
		log.Info("the interface is up again", "interface", now.name)
	}
	return nil
}
