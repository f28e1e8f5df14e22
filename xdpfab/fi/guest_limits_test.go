// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/errno"
	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// What a guest may not have is refused with the reason, and it can have the rest.
func TestGuestLimits(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	g := guestBy(t, hostingOf(t, a, host.GuestLimits{Entries: 100, Arena: 1 << 17, Endpoints: 1, Regions: 1, Memory: 8192, Rule: "rule 7",
		Serve: func(name string) error {
			if !strings.HasPrefix(name, "mine") {
				return errors.New("rule 7 allows mine alone")
			}
			return nil
		}}), fi.DomainAttr{}, nil)
	if s := g.Node().Dev.(*guestpkg.Attached).Ring.Tags(); s != 64 {
		t.Errorf("rings of %d entries, want 64: the host allows 100", s)
	}
	register := func(name string, size int, length ...int) (*mr.Region, error) {
		mem, err := mr.Memfd(name, size)
		if err != nil {
			t.Fatal(err)
		}
		r, err := g.Register(mem, mr.Options{Name: name, Access: mr.RemoteRead, Length: append(length, 0)[0]})
		t.Cleanup(func() {
			if r != nil {
				_ = r.Close()
			}
			_ = mem.Close()
		})
		return r, err
	}
	refused := func(err error, want string) {
		t.Helper()
		if !errors.Is(err, fi.ErrDenied) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	_, err := register("yours", 4096)
	refused(err, `region "yours": rule 7 allows mine alone`)
	_, err = register("mine", 12288)
	refused(err, "rule 7 allows 8192 in all")
	_, err = register("mine", 1<<40, 8) // which has no pages yet, but takes the host's address space
	refused(err, "rule 7 allows 8192 in all")
	if _, err = register("mine", 4096); err != nil {
		t.Fatal(err)
	}
	_, err = register("mine too", 4096)
	refused(err, "more than 1 regions of one program: rule 7 allows no more")
	if _, err := g.NewEndpoint(fi.EndpointAttr{}); err != nil {
		t.Fatal(err)
	}
	_, err = g.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	refused(err, "more than 1 endpoints of one program: rule 7 allows no more")
}

// The numbers of a guest's endpoints are counted once, whatever has them: endpoints,
// passive endpoints, and scalable endpoints, whose contexts cost no more.
func TestGuestNumbers(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	g := guestBy(t, hostingOf(t, a, host.GuestLimits{Endpoints: 4, Rule: "rule 7"}), fi.DomainAttr{}, nil)
	s, err := g.NewScalableEndpoint(fi.ScalableAttr{Number: fi.AnyNumber, RXContexts: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := s.ReceiveContext(i); err != nil {
			t.Fatal(err)
		}
	}
	_, err = g.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	p, err2 := g.NewPassiveEndpoint(fi.PassiveAttr{Number: fi.AnyNumber})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	_, err = g.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	_, err2 = g.NewPassiveEndpoint(fi.PassiveAttr{Number: fi.AnyNumber})
	_, err3 := g.NewScalableEndpoint(fi.ScalableAttr{Number: fi.AnyNumber, RXContexts: 1})
	for _, err := range []error{err, err2, err3} {
		if !errors.Is(err, fi.ErrDenied) || !strings.Contains(err.Error(), "more than 4 endpoints") {
			t.Errorf("a fifth number: %v", err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := g.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber}); err != nil {
		t.Errorf("after one was given back: %v", err)
	}
}

// A weight that would make the turn of one guest long is refused.
func TestGuestWeight(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	for _, weight := range []int{-1, 101} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fds[0]), "host")
		conn, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		err = a.Hosting().Serve(conn.(*net.UnixConn), host.GuestLimits{Weight: weight})
		if err == nil || !strings.Contains(err.Error(), "want 1 to 100") {
			t.Errorf("weight %d: %v", weight, err)
		}
		if err := errors.Join(f.Close(), unix.Close(fds[1])); err != nil {
			t.Error(err)
		}
	}
}

// The host knows its guests and what they have.
func TestGuests(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	if list := a.Hosting().Guests(); len(list) != 0 {
		t.Errorf("guests before there is one: %+v", list)
	}
	t.Run("attached", func(t *testing.T) {
		g := guestOf(t, a, fi.DomainAttr{})
		p, err := g.Dial(t.Context(), b.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		w, err := xdpfab.Word[uint64](t.Context(), p, "words", 0)
		if err == nil {
			_, err = w.Add(t.Context(), 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		list := a.Hosting().Guests()
		if len(list) != 1 || list[0].PID != os.Getpid() || list[0].UID != uint32(os.Geteuid()) || list[0].Endpoints != 1 ||
			list[0].Peers != 1 || list[0].Taken < 2 || list[0].Completed < 2 || list[0].Refused != 0 || list[0].Timed == 0 ||
			list[0].Took == 0 {
			t.Errorf("%+v", list)
		}
		region, err := g.NewRegion("theirs", 64)
		if err != nil {
			t.Fatal(err)
		}
		ep, err := g.NewEndpoint(fi.EndpointAttr{})
		if err == nil {
			err = ep.Enable()
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err = b.Dial(t.Context(), ep.Name())
		if err == nil {
			w, err = xdpfab.Word[uint64](t.Context(), p, "theirs", 0)
		}
		if err == nil {
			_, err = w.Add(t.Context(), 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := host.Applied{Fetching: 1, FetchingBytes: 8}
		applied := func() bool { list = a.Hosting().Guests(); return len(list) == 1 && list[0].Applied == want }
		testnet.Eventually(t, "what the peer did to the program's region is counted", applied)
		if err := region.Close(); err != nil {
			t.Fatal(err)
		}
		if !applied() {
			t.Errorf("when the region is withdrawn: %+v, want %+v as before", list, want)
		}
	})
	if list := a.Hosting().Guests(); len(list) != 0 {
		t.Errorf("guests when it has gone: %+v", list)
	}
}

// An endpoint of a guest counts as one that serves from its Enable on, when peers can
// reach it, and not before.
func TestGuestsServing(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	g := guestOf(t, a, fi.DomainAttr{})
	has := func(when string, endpoints, serving int) {
		t.Helper()
		if l := a.Hosting().Guests(); len(l) != 1 || l[0].Endpoints != endpoints || l[0].Serving != serving {
			t.Errorf("%s: %+v, want %d endpoints, of which %d serve", when, l, endpoints, serving)
		}
	}
	has("at first", 0, 0)
	ep, err := g.NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	has("made", 1, 0)
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	has("enabled", 1, 1)
	if err := ep.Close(); err != nil {
		t.Fatal(err)
	}
	has("closed", 0, 0)
}

// An error that a guest gets from its host is the host's: the text, and whatever it
// wraps.
func TestHostErrors(t *testing.T) {
	err := fmt.Errorf("%w: %w", fi.ErrPeerSilent, fmt.Errorf("neighbour: %w", port.ErrUnreachable))
	// replied is err as the guest gets it.
	replied := func(err error) error {
		code, _ := errno.Of(err)
		return guestpkg.Replied(share.Reply{Error: err.Error(), Errno: code, Kinds: node.KindsOf(err)})
	}
	got := replied(err)
	if got.Error() != err.Error() || !errors.Is(got, fi.ErrPeerSilent) || !errors.Is(got, port.ErrUnreachable) || errors.Is(got, fi.ErrBusy) {
		t.Errorf("%v", got)
	}
	for kind, e := range node.GuestErrors {
		if got := guestpkg.Replied(share.Reply{Kinds: []string{kind}}); !errors.Is(got, e) {
			t.Errorf("%s: not %v", kind, e)
		}
		want, coded := fi.ErrnoOf(e)
		if code, is := fi.ErrnoOf(replied(fmt.Errorf("wrapped: %w", e))); code != want || is != coded {
			t.Errorf("%s: its code is %v (%v), want %v (%v)", kind, code, is, want, coded)
		}
	}
	// The number says what no kind does, and which of two kinds comes first.
	for err, want := range map[error]fi.Errno{
		fmt.Errorf("region: %w", mr.ErrName):             fi.Errno(syscall.EINVAL),
		fmt.Errorf("%w: %w", errno.Access, errno.Closed): fi.Errno(syscall.EACCES),
		fmt.Errorf("%w: %w", errno.Closed, errno.Access): fi.Errno(syscall.EBADF),
	} {
		if code, is := fi.ErrnoOf(replied(err)); code != want || !is || !errors.Is(replied(err), want) {
			t.Errorf("%v: its code is %v (%v), want %v", err, code, is, want)
		}
	}
	if code, is := fi.ErrnoOf(replied(errors.New("uncoded"))); code != fi.EOTHER || is {
		t.Errorf("an error without a code has %v", code)
	}
}
