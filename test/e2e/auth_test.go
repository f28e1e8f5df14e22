// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// secretFile writes an authorization key into a file.
func secretFile(t *testing.T, key string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Only peers that prove the key of a region use it, whether a poller or the XDP program
// executes. A session with a key goes on when the daemon is killed, and when another one
// takes its place; but with another key no takeover makes a resident region go on.
func TestAuthKeys(t *testing.T) {
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18")
	}
	net, folder := testnet.NewPair(t, testnet.Options{}), filepath.Join(testnet.BPFFS(t), "xdpfab", "node")
	key, other := secretFile(t, "0123456789abcdefgh"), secretFile(t, "hgfedcba9876543210")
	flags := func(key string) []string {
		return []string{"--pin", folder, "--region", "hot=4KiB:resident,auth-key=" + key, "--region", "safe=4KiB:auth-key=" + key,
			"--region", "open=4KiB"}
	}
	d := serve(t, net.B, flags(key)...)
	add := func(region string, more ...string) *process {
		return xdpfab(t, net.A, append([]string{"atomic", "sum", "uint64", "1", "-i", net.A.IfName, "--peer", d.addr(), "--region", region}, more...))
	}
	keyed := []string{"--auth-key-file", key}
	for _, region := range []string{"hot", "safe"} {
		add(region).wants(1, "has an authorization key, and this command proves none", "by --auth-key-file")
		add(region, "--auth-key-file", other).wants(1, "the peer has nothing with the key in "+other, "name the file with the key")
		add(region, keyed...).wants(0)
	}
	add("open").wants(0)
	add("open", keyed...).wants(1, "has no authorization key, or another than the one in "+key, "leave out --auth-key-file")
	xdpfab(t, net.A, []string{"list", d.addr(), "-i", net.A.IfName}).wants(0)

	ping := start(t, net.A, xdpfabPath, []string{"ping", d.addr(), "-i", net.A.IfName, "--region", "hot", "-c", "0", "--interval", "5ms", "--auth-key-file", key})
	executed := func() uint64 {
		s, err := d.ask()
		if err != nil {
			return 0
		}
		return s.Counters["resident_ops_executed"]
	}
	more := func(when string) {
		t.Helper()
		was := executed()
		ping.eventually("executed by the XDP program "+when, func() bool { return executed() > was+20 })
	}
	more("at first")
	d.crash()
	d = launch(t, net.B, d.socket, flags(key)...)
	d.ready()
	more("after the daemon was killed")
	next := launch(t, net.B, d.socket, append(flags(key), "--takeover")...)
	next.ready()
	d.wants(0)
	d = next
	more("after a takeover")
	start(t, net.B, xdpfabdPath, append(flags(other), "--takeover", "--interface", net.B.IfName, "--control", d.socket)).wants(1,
		`region "hot"`, "want the same", "that daemon continues")
	more("after a takeover that was refused")
	ping.signal(unix.SIGINT)
	ping.wants(0)
	add("hot").wants(1, "has an authorization key")
	d.end()
}
