// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A newcomer's command lines name no interface, and the peer by whatever name it has;
// they run as root, as nobody, and in a container that has a daemon's socket alone.
func TestNewcomer(t *testing.T) {
	net := testnet.NewVeth(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=4KiB")
	dir, ip, adds := nobodysDir(t), net.B.IP4.String(), 0
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("xdpfab/config.toml", fmt.Sprintf("timeout = %q\n[peers]\nnode7 = %q\n", limit, ip))
	hosts := write("hosts", ip+" node8.example\n")
	home := func(more ...string) option { return env(append(more, "XDG_CONFIG_HOME="+dir)...) }
	command := func(peer string) []string {
		return []string{"atomic", "sum", "uint64", "5", "-q", "-v", "--region", "r", "--peer", peer}
	}
	says := func(p *process, what ...string) {
		t.Helper()
		p.wants(0)
		adds++
		for _, w := range what {
			if !strings.Contains(p.err.String(), w) {
				t.Errorf("%s says %q, want %q", p.name, p.err.String(), w)
			}
		}
	}
	for _, peer := range []string{ip, net.B.IP6.String(), "node7", "node7/0"} {
		says(start(t, net.A, xdpfabPath, command(peer), home()), "interface veth0, chosen by the route to", "transport xdp, through no daemon")
	}
	says(start(t, net.A, xdpfabPath, command(net.B.MAC.String()), home()), "interface veth0, chosen by ", "transport xdp")
	says(start(t, net.A, xdpfabPath, command("node7"), home(), unprivileged), "UDP sockets carry the frames", "CAP_", "transport udp")
	start(t, net.A, xdpfabPath, command(net.B.MAC.String()), home(), unprivileged).wants(5, "CAP_", "veth0 was chosen by")
	named := func(name string) *process {
		t.Helper()
		return start(t, net.A, "unshare", []string{"-m", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts, xdpfabPath,
			command("")[0], "sum", "uint64", "5", "-q", "-v", "--region", "r", "--peer", name}, home())
	}
	says(named("node8.example"), "chosen by the route to "+ip)
	unknown := named("node9.example")
	if <-unknown.done; unknown.cmd.ProcessState.Success() || !strings.Contains(unknown.err.String(), "lookup node9.example") {
		t.Errorf("an unknown host: %v, %s", unknown.cmd.ProcessState, unknown.err.String())
	}
	// In a container there is the daemon's socket, and no interface of that name.
	contained := home("XDPFAB_CONTROL=" + d.socket)
	says(start(t, net.A, xdpfabPath, command(ip), contained), "chosen by the daemon at "+d.socket, "through the daemon at "+d.socket)
	says(start(t, net.A, xdpfabPath, append(command(ip), "-i", net.A.IfName), home("XDPFAB_CONTROL="+dir+"/none.sock")),
		"no daemon answers at "+dir+"/none.sock, which XDPFAB_CONTROL names: "+net.A.IfName+" is used without one")
	shown := start(t, net.A, xdpfabPath, []string{"config"}, contained)
	if shown.wants(0); !strings.Contains(shown.out.String(), "XDPFAB_CONTROL") || !strings.Contains(shown.out.String(), file) {
		t.Errorf("config says %s", shown.out.String())
	}
	last := start(t, net.A, xdpfabPath, command(ip), home())
	if last.wants(0); strings.TrimSpace(last.out.String()) != fmt.Sprint(5*adds) {
		t.Errorf("found %q after %d additions of 5", last.out.String(), adds)
	}
	write("xdpfab/config.toml", "interfce = \"eth0\"\n")
	start(t, net.A, xdpfabPath, command(ip), home()).wants(2, file, "interfce: unknown key", "known are auth-key-file, control, directory, interface, timeout")
}
