// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// talkTo returns the program's end of a conversation that a domain hosts, and what Host
// returns.
func talkTo(t *testing.T, d *xdpfab.Domain, limits host.GuestLimits) (*share.Talk, <-chan error) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		c, err := net.FileConn(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		ends[i] = c.(*net.UnixConn)
	}
	hosted := make(chan error, 1)
	go func() { hosted <- d.Hosting().Serve(ends[1], limits) }()
	talk := share.NewTalk(ends[0])
	t.Cleanup(func() { _ = talk.Close() })
	return talk, hosted
}

// A program that connects and does not attach is told why it is turned out, and holds
// nothing.
func TestGuestTooLate(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	limits := host.GuestLimits{Attach: time.Millisecond, Rule: "rule 7"}
	for name, begin := range map[string]func(*share.Talk) error{
		"says nothing": func(*share.Talk) error { return nil },
		"asks alone": func(talk *share.Talk) error {
			return talk.Send(share.Call{Verb: share.CallOffer, Arguments: []byte("{}")})
		},
	} {
		talk, hosted := talkTo(t, a, limits)
		if err := begin(talk); err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("%s: %v", name, err)
		}
		var last share.Reply
		err := error(nil)
		for err == nil {
			var r share.Reply
			if _, err = talk.Receive(&r); err == nil {
				last = r
			}
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("%s: the conversation ends with %v", name, err)
		}
		if err := guestpkg.Replied(last); !errors.Is(err, fi.ErrDenied) || !strings.Contains(err.Error(), "within 1ms of connecting: rule 7 allows no more") {
			t.Errorf("%s: the program is told %v", name, err)
		}
		if err := <-hosted; !errors.Is(err, fi.ErrDenied) {
			t.Errorf("%s: the host says %v", name, err)
		}
		if list := a.Hosting().Guests(); len(list) != 0 {
			t.Errorf("%s: %+v are still there", name, list)
		}
	}
}

// Once a program has attached, it may be silent for as long as it likes.
func TestGuestInTime(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	for limit := 8 * time.Millisecond; ; limit *= 2 { // until it is enough for this machine
		talk, hosted := talkTo(t, a, host.GuestLimits{Attach: limit})
		dev, err := guestpkg.Attach(t.Context(), talk, "test", nil)
		if err != nil {
			<-hosted
			continue
		}
		time.Sleep(limit)
		if _, err := dev.Counters(); err != nil {
			t.Errorf("%v after attaching: %v", limit, err)
		}
		if err := errors.Join(dev.Close(), <-hosted); err != nil {
			t.Error(err)
		}
		return
	}
}
