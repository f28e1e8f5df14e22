// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// setOptions applies what may be set on a socket that has its rings.
func (s *Socket) setOptions(cfg *Config) error {
	if err := s.setTXBudget(cfg); err != nil {
		return err
	}
	if cfg.SendBuffer > 0 {
		// The forced variant ignores net.core.wmem_max but needs CAP_NET_ADMIN. The
		// kernel doubles the value.
		if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, cfg.SendBuffer/2) != nil {
			if err := s.limitedSendBuffer(cfg.SendBuffer); err != nil {
				return err
			}
		}
	}
	if cfg.BusyPoll.Time == 0 {
		return nil
	}
	usec := int((cfg.BusyPoll.Time + time.Microsecond - 1) / time.Microsecond)
	for _, o := range []struct {
		name         string
		level, value int
	}{
		{"SO_PREFER_BUSY_POLL", unix.SO_PREFER_BUSY_POLL, 1},
		{"SO_BUSY_POLL", unix.SO_BUSY_POLL, usec},
		{"SO_BUSY_POLL_BUDGET", unix.SO_BUSY_POLL_BUDGET, cfg.BusyPoll.Budget},
	} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, o.level, o.value); err != nil {
			return busyPollError(o.name, err)
		}
	}
	return nil
}

// setTXBudget raises the number of descriptors for each call, if the kernel
// allows it.
func (s *Socket) setTXBudget(cfg *Config) error {
	s.txBudget = defaultTXBudget
	want := cfg.TXBudget
	if want == 0 {
		want = cfg.TXSize // without a ring, or with a tiny one, there is nothing to ask for
	}
	if want <= defaultTXBudget {
		return nil
	}
	err := unix.SetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, want)
	switch {
	case err == nil:
		s.txBudget = want
	case cfg.TXBudget != 0 && errors.Is(err, unix.ENOPROTOOPT):
		return fmt.Errorf("xsk: TX budget of %d: %w: %w; it takes Linux 6.17, leave TXBudget 0 to do without", want,
			ErrUnsupported, err)
	case cfg.TXBudget != 0:
		return fmt.Errorf("xsk: TX budget of %d: %w", want, err)
	}
	return nil
}

// limitedSendBuffer sets the send buffer without privilege, and fails if the
// kernel silently clamps it to net.core.wmem_max.
func (s *Socket) limitedSendBuffer(want int) error {
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, want/2); err != nil {
		return fmt.Errorf("xsk: send buffer of %d bytes: %w", want, err)
	}
	got, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err == nil && got < want&^1 {
		return fmt.Errorf(
			"xsk: send buffer of %d bytes, the kernel allows %d: %w; grant CAP_NET_ADMIN or raise net.core.wmem_max",
			want, got, ErrPermission)
	}
	return err
}

// bind attaches the socket to its queue.
func (s *Socket) bind(cfg *Config) error {
	addr := unix.SockaddrXDP{Ifindex: uint32(cfg.IfIndex), QueueID: uint32(cfg.Queue)}
	if cfg.Shared != nil {
		// The kernel takes all other flags from the shared socket.
		addr.Flags, addr.SharedUmemFD = unix.XDP_SHARED_UMEM, uint32(cfg.Shared.fd)
	} else {
		addr.Flags = map[Mode]uint16{ZeroCopy: unix.XDP_ZEROCOPY, Copy: unix.XDP_COPY}[cfg.Mode]
		if !cfg.NoNeedWakeup {
			addr.Flags |= unix.XDP_USE_NEED_WAKEUP
		}
		if cfg.MultiBuffer {
			addr.Flags |= unix.XDP_USE_SG
		}
	}
	err := retry(cfg.BindTimeout, unix.EBUSY, func() error { return unix.Bind(s.fd, &addr) })
	if errors.Is(err, unix.EINVAL) && addr.Flags&unix.XDP_ZEROCOPY != 0 {
		// This errno has several causes. If the queue can be bound in copy mode,
		// it is zero-copy that the driver refuses. The socket is closed either
		// way.
		addr.Flags = addr.Flags&^unix.XDP_ZEROCOPY | unix.XDP_COPY
		if unix.Bind(s.fd, &addr) == nil {
			return explain(fmt.Sprintf("binding to queue %d of interface %d", cfg.Queue, cfg.IfIndex), err,
				zeroCopyCauses)
		}
	}
	return bindError(err, cfg)
}

// seldom is the longest time between two tries of retry. A pause until the user before
// has given a queue back must not become twice as long by waiting.
const seldom = 16 * time.Millisecond

// retry calls f until it no longer fails with errno, or time is up.
func retry(timeout time.Duration, errno error, f func() error) error {
	deadline := time.Now().Add(timeout)
	for wait := time.Millisecond; ; wait = min(2*wait, seldom) {
		err := f()
		left := time.Until(deadline)
		if !errors.Is(err, errno) || left <= 0 {
			return err
		}
		time.Sleep(min(wait, left))
	}
}

// namespaceOf identifies the network namespace of a socket, 0 if the kernel does
// not say (before 5.14); sockets of several namespaces cannot share then.
func namespaceOf(fd int) uint64 {
	var cookie uint64
	if _, err := option(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE, &cookie); err != nil {
		return 0
	}
	return cookie
}
