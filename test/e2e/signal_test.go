// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	fab "github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// file makes a file with contents.
func file(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A watch sees the word that put --signal changes, by either kind of address, and the
// file is there then; a signal that is refused has put write nothing.
func TestPutSignal(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "data=4MiB", "--region", "bell=4KiB")
	host(t, net.A)
	run := func(args ...string) *process {
		t.Helper()
		return start(t, net.A, xdpfabPath, append(args, "-i", net.A.IfName))
	}
	for i, peer := range []string{d.addr(), net.B.IP4.String()} {
		want := bytes.Repeat([]byte{byte(i + 1)}, 3<<20+5)
		watch := run("watch", peer, "--region", "bell", "--offset", "16", "--until", fmt.Sprint(i+7), "--interval", "1ms")
		watch.eventually("it sees the word", func() bool { return strings.Contains(watch.out.String(), "\n") })
		signal := "bell:16=7"
		if i > 0 {
			signal = "bell:16"
		}
		run("put", peer, file(t, want), "--region", "data", "--signal", signal).wants(0)
		if watch.wants(0); !strings.HasSuffix(watch.out.String(), fmt.Sprintf(" -> %d\n", i+7)) {
			t.Errorf("watch: %s", watch.out.String())
		}
		got := filepath.Join(t.TempDir(), "got")
		run("get", peer, got, "--region", "data", "--length", fmt.Sprint(len(want))).wants(0)
		if b, err := os.ReadFile(got); err != nil || !bytes.Equal(b, want) {
			t.Errorf("%s: %d bytes, %v, as they were put: %t", peer, len(b), err, bytes.Equal(b, want))
		}
	}
	other := file(t, []byte("another"))
	run("put", d.addr(), other, "--region", "data", "--signal", "bell:4KiB").wants(1, "a word at 4096 of region bell", "nothing was written")
	run("put", d.addr(), other, "--region", "data", "--signal", "none:8").wants(1, `"none"`)
	head := run("get", d.addr(), "-", "--region", "data", "--length", "8")
	if head.wants(0); head.out.String() != strings.Repeat("\x02", 8) {
		t.Errorf("after refusals the file begins with %q", head.out.String())
	}
}

// attach opens the interface of a daemon's side as its guest.
func attach(t *testing.T, d *node) *fab.Domain {
	t.Helper()
	var dom *fab.Domain
	err := d.side.Do(func() (err error) {
		dom, err = fab.Open(t.Context(), d.side.IfName, fab.DomainAttr{Attach: fi.AttachAlways, Control: d.socket, GiveUp: limit})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dom
}

// A guest of a daemon sleeps in Wait until put has written a file into its region, with a
// signal in the same region, and finds all of the file: daemons on AF_XDP, and on UDP
// sockets.
func TestPutWakesGuest(t *testing.T) {
	for name, flags := range map[string][]string{"AF_XDP": nil, "UDP sockets": {"--transport", "udp"}} {
		t.Run(name, func(t *testing.T) {
			testnet.Require(t)
			net := testnet.NewPair(t, testnet.Options{})
			d := host(t, net.B, flags...)
			host(t, net.A, flags...)
			dom := attach(t, d)
			defer dom.CloseAll()
			const number, at, size = 31, 4096, 100_000
			ep, err := dom.NewEndpoint(fab.EndpointAttr{Number: number})
			region, err2 := dom.NewRegion("box", 128<<10)
			if err := errors.Join(err, err2, ep.Enable()); err != nil {
				t.Fatal(err)
			}
			for i := byte(1); i <= 5; i++ {
				want := bytes.Repeat([]byte{i}, size)
				put := start(t, net.A, xdpfabPath, []string{"put", fmt.Sprint(net.B.IP4, "/", number), file(t, want), "-i", net.A.IfName,
					"--region", "box", "--offset", fmt.Sprint(at), "--signal", "box:8"})
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				v, err := fab.Wait(ctx, dom, region, 1, fab.AtLeast(uint64(i)))
				cancel()
				if err != nil || v != uint64(i) || !bytes.Equal(region.Bytes()[at:at+size], want) {
					t.Errorf("file %d: %d, %v, all there: %t", i, v, err, bytes.Equal(region.Bytes()[at:at+size], want))
				}
				put.wants(0)
			}
		})
	}
}

// The daemon of a guest dies during a flush, which cannot end otherwise: the peer is
// stopped. What it waits for ends, with an unknown outcome; so the flush ends, too, or
// says that the daemon is lost.
func TestDaemonDiesDuringFlush(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	far := serve(t, net.B, "--region", "r=4KiB")
	h := launch(t, net.A, filepath.Join(t.TempDir(), socketName), "--guest", "allow")
	h.ready()
	dom := attach(t, h)
	defer dom.CloseAll()
	peer, err := dom.Dial(t.Context(), far.addr())
	if err != nil {
		t.Fatal(err)
	}
	word, err := fab.Word[uint64](t.Context(), peer, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	far.halt()
	add := word.StartAdd(t.Context(), 1)
	const flushes = 10 // most of them wait by the time
	ended := make(chan error)
	for range flushes {
		go func() { ended <- peer.Flush(t.Context()) }()
		go func() { ended <- dom.Quiet(t.Context()) }()
	}
	h.kill()
	for range 2 * flushes {
		if err := <-ended; err != nil && !errors.Is(err, fi.ErrHostLost) {
			t.Errorf("a flush: %v", err)
		}
	}
	if _, err := add.Wait(t.Context()); !errors.Is(err, fi.ErrOutcomeUnknown) {
		t.Errorf("the addition: %v", err)
	}
	far.signal(unix.SIGCONT)
}
