// SPDX-License-Identifier: Apache-2.0

//go:build linux

package way

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A process is in the network namespace of its first thread (/proc/self/ns/net). So that
// one stays with TestMain: a test that entered a namespace on it would change the answer.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// serve has a daemon's status at a socket of a folder until the test ends.
func serve(t *testing.T, folder string, netns uint64, i node.InterfaceInfo) string {
	t.Helper()
	path := filepath.Join(folder, i.Name+".sock")
	l, err := control.Listen(t.Context(), path, control.Access{Mode: control.DefaultMode})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- control.ServeListener(ctx, l, control.Service{Source: func() (control.Status, error) {
			return control.Status{NetNS: netns, Interface: i}, nil
		}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return path
}

func parse(t *testing.T, text string) wire.Addr {
	t.Helper()
	a, err := wire.ParseAddr(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Which interface is chosen, and why, without daemons, with those of this namespace and
// of others, and with one that is named.
func TestChoose(t *testing.T) {
	pair := testnet.NewVeth(t, testnet.Options{})
	side, none := pair.A, t.TempDir()
	const stranger = "02:00:00:00:00:77"
	check := func(name, named, folder, want, why string, to ...string) {
		t.Helper()
		var all []wire.Addr
		for _, text := range to {
			all = append(all, parse(t, text))
		}
		var c Choice
		err := side.Do(func() (err error) {
			c, err = Choose(t.Context(), named, folder, all, testnet.Patience)
			return err
		})
		if len(all) == 0 {
			all = []wire.Addr{{}}
		}
		if err != nil || c.Interface != want || !strings.Contains(c.Why, why) || c.Peer != all[len(all)-1] {
			t.Errorf("%s: %+v, %v; want %s by %s to %v", name, c, err, want, why, to)
		}
	}
	ip, ip6 := pair.B.IP4.String(), pair.B.IP6.String()
	check("IPv4", "", none, side.IfName, "the route to "+ip, ip)
	check("IPv6", "", none, side.IfName, "the route to "+ip6, ip6)
	check("own", "", none, side.IfName, "the route", side.IP4.String())
	check("loopback", "", none, "lo", "the route", "127.0.0.1")
	check("second address", "", none, side.IfName, "the route to "+ip, "192.0.2.1", ip)
	check("MAC", "", none, side.IfName, "", stranger)
	check("nobody", "", none, side.IfName, "the only interface that is up")

	var here uint64
	if err := side.Do(func() error { here = control.Namespace(); return nil }); err != nil {
		t.Fatal(err)
	}
	daemons := t.TempDir()
	path := serve(t, daemons, here, node.InterfaceInfo{Name: "port7", Above: side.IfName + " (bridge), other (bond, whose addresses are not served: …)"})
	serve(t, daemons, here+1, node.InterfaceInfo{Name: "elsewhere"})
	check("daemon below the route's interface", "", daemons, "port7", "the daemon at "+path, ip)
	check("the only daemon", "", daemons, "port7", "the only one that a daemon serves", stranger)
	check("named", path, none, "port7", "the daemon at "+path, ip)
	check("named, for nobody", path, none, "port7", "the daemon at "+path)
	check("named, elsewhere", filepath.Join(daemons, "elsewhere.sock"), none, "elsewhere", "the daemon at", ip)

	// Another interface that is up makes a MAC address unclear, unless it is known.
	testnet.IP(t, side, "link add x0 type veth peer name x1", "link set x0 up", "link set x1 up")
	refuse := func(named string, to string, want error, words ...string) {
		t.Helper()
		err := side.Do(func() error {
			_, err := Choose(t.Context(), named, none, []wire.Addr{parse(t, to)}, testnet.Patience)
			return err
		})
		if !errors.Is(err, want) {
			t.Errorf("%s %s: %v", named, to, err)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s %s: %v, want %q", named, to, err, w)
			}
		}
	}
	refuse("", stranger, ErrUnclear, side.IfName, "x0", "x1", "IP address")
	refuse("", "192.0.2.1", ErrNoRoute, "no route to 192.0.2.1")
	refuse(filepath.Join(none, "absent.sock"), ip, control.ErrNoDaemon)
	testnet.IP(t, side, "neigh add 10.99.0.1 lladdr "+stranger+" dev x1")
	check("a neighbour", "", none, "x1", "the kernel's neighbour entry for "+stranger, stranger)
	check("own MAC", "", none, side.IfName, "the kernel's neighbour entry", side.MAC.String())

	testnet.IP(t, side, "addr add 192.0.2.7/24 dev x0", "link set x0 down")
	refuse("", "192.0.2.1", ErrDown, "x0, which leads to 192.0.2.1: interface is down: `ip link set dev x0 up`")
}
