// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/diagnose"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// diagnosed runs `xdpfab diagnose`, which must end with a code, and returns its report.
func diagnosed(t *testing.T, side *testnet.Side, code int, line string, options ...option) (r diagnose.Report) {
	t.Helper()
	args := append([]string{"diagnose", "--json"}, strings.Fields(line)...)
	if !strings.Contains(line, "-i ") {
		args = append(args, "-i", "veth0")
	}
	p := xdpfab(t, side, args, options...)
	if err := json.Unmarshal([]byte(p.out.String()), &r); err != nil || p.code() != code {
		t.Fatalf("%s: code %d, want %d; %v in %s%s", p.name, p.code(), code, err, p.out.String(), p.err.String())
	}
	if r.OK != (code == 0) || (r.Cause == "") != r.OK || (r.Remedy == "") != r.OK {
		t.Errorf("%s: ok %v, cause %q, remedy %q", p.name, r.OK, r.Cause, r.Remedy)
	}
	for _, s := range r.Steps {
		t.Logf("%-14s %-8s %8.1f  %s -> %s", s.Name, s.Verdict, s.Milliseconds, s.Detail, s.Remedy)
		if s.Verdict == diagnose.Failed && s.Detail == "" || s.Milliseconds < 0 {
			t.Errorf("step %+v", s)
		}
	}
	t.Logf("cause: %s; remedy: %s", r.Cause, r.Remedy)
	return r
}

// verdicts checks those of some steps: "step=verdict".
func verdicts(t *testing.T, r *diagnose.Report, wants ...string) {
	t.Helper()
	for _, w := range wants {
		name, verdict, _ := strings.Cut(w, "=")
		found := "missing"
		for _, s := range r.Steps {
			if s.Name == name {
				found = string(s.Verdict)
			}
		}
		if found != verdict {
			t.Errorf("step %s: %s, want %s", name, found, verdict)
		}
	}
}

// short is the time for each answer of a peer that is not there.
const short = " --timeout 2s"

// patient is that for one which is: no machine is so busy.
var patient = fmt.Sprintf(" --timeout %v", silence)

// A peer in order: every step is. By either address, with and without a daemon here, and
// without a privilege through it.
func TestDiagnoseGood(t *testing.T) {
	testnet.Require(t)
	t.Parallel()
	net := testnet.NewPair(t, testnet.Options{})
	serve(t, net.B, "--region", "counters=64KiB", "--region", "log=4KiB:wo")
	all := []string{"interface=ok", "daemon=ok", "kernel=ok", "addresses=ok", "route=ok", "neighbour=ok", "port=ok", "open=ok",
		"session=ok", "encapsulation=ok", "round trip=ok", "regions=ok", "queues=ok", "MTU=ok"}
	try := func(t *testing.T, options ...option) {
		for _, addr := range []string{net.B.IP4.String(), net.B.IP6.String(), net.B.MAC.String()} {
			r := diagnosed(t, net.A, 0, addr+patient, options...)
			verdicts(t, &r, all...)
		}
	}
	t.Run("direct", func(t *testing.T) { try(t) })
	t.Run("unprivileged, by UDP sockets", func(t *testing.T) {
		r := diagnosed(t, net.A, 0, net.B.IP4.String()+patient, unprivileged)
		verdicts(t, &r, "kernel=doubtful", "neighbour=ok", "port=ok", "session=ok", "encapsulation=left out", "MTU=ok")
		r = diagnosed(t, net.A, 5, net.B.MAC.String()+patient, unprivileged)
		verdicts(t, &r, "kernel=doubtful", "session=left out")
	})
	t.Run("through a daemon", func(t *testing.T) {
		h := launch(t, net.A, filepath.Join(t.TempDir(), socketName), "--socket-mode", "0666", "--guest", "allow",
			"--give-up", silence.String())
		h.ready()
		try(t, env("XDPFAB_CONTROL="+h.socket))
		h.end()
	})
}

// The address of this node, whose daemon answers there.
func TestDiagnoseOwnAddress(t *testing.T) {
	testnet.Require(t)
	t.Parallel()
	net := testnet.NewPair(t, testnet.Options{})
	n := serve(t, net.A, "--transport", "udp", "--region", "r=4KiB")
	own := net.A.IP4.String()
	r := diagnosed(t, net.A, 0, own+" --control "+n.socket+patient)
	verdicts(t, &r, "addresses=doubtful", "session=ok", "round trip=ok", "regions=ok")
	r = diagnosed(t, net.A, 5, own+patient) // not by the daemon, which is at no usual path
	verdicts(t, &r, "kernel=ok", "addresses=failed", "route=left out")
	if !strings.Contains(r.Cause, "has UDP port 34997 of "+own) || r.Remedy != "name its socket: --control "+n.socket {
		t.Errorf("cause %q, remedy %q", r.Cause, r.Remedy)
	}
	r = diagnosed(t, net.A, 5, "127.0.0.1 -i lo"+patient) // which nobody serves
	verdicts(t, &r, "kernel=ok", "addresses=failed", "route=left out")
	r = diagnosed(t, net.A, 5, "127.0.0.1 --control "+n.socket+patient)
	if r.Cause != "127.0.0.1 is lo's address on this node, and this daemon serves veth0" {
		t.Errorf("cause %q", r.Cause)
	}
	p := xdpfab(t, net.A, []string{"list", net.B.IP4.String(), "-i", net.A.IfName}, unprivileged)
	if text := p.err.String(); p.code() != 5 || !strings.HasPrefix(text, "xdpfab: another program has UDP port 34997 of "+own) ||
		!strings.Contains(text, "if it is xdpfabd, name its socket (--control PATH") || strings.Contains(text, "CAP_") {
		t.Errorf("another program has the port: code %d, %q", p.code(), text)
	}
	for _, line := range []string{"send " + own + " hello", "list " + own + "/99"} {
		p := xdpfab(t, net.A, append(strings.Fields(line), "--control", n.socket))
		if text := p.err.String(); p.code() != 1 || strings.Contains(text, "an address of this node") {
			t.Errorf("%s: code %d, %q", line, p.code(), text)
		}
	}
	n.end()
}

// Each obstacle is told by the step that meets it.
func TestDiagnoseObstacles(t *testing.T) {
	testnet.Require(t)
	t.Parallel()
	for name, c := range map[string]struct {
		serve  []string // the daemon's flags; nil for none
		line   string   // $P: the peer's MAC address, $OWN: this node's
		code   int
		cause  string
		remedy string
		wants  []string
	}{
		"no daemon": {nil, "10.77.0.2" + short, 4, "the host 10.77.0.2 is up, but nothing there takes UDP port",
			"start xdpfabd there", []string{"neighbour=ok", "port=failed", "session=failed", "encapsulation=failed", "MTU=left out"}},
		"no daemon at the MAC address": {nil, "$P" + short, 4, "no xdpfabd runs there", "xdpfab stat",
			[]string{"neighbour=ok", "session=failed", "encapsulation=failed"}},
		"raw Ethernet alone": {[]string{"--udp=false", "--region", "r=4KiB"}, "10.77.0.2" + patient, 4, "over raw Ethernet, and not over UDP",
			"--udp", []string{"port=failed", "session=failed", "encapsulation=failed", "regions=ok"}},
		"UDP sockets alone": {[]string{"--transport", "udp", "--region", "r=4KiB"}, "$P" + patient, 4,
			"over UDP, and not over raw Ethernet", "use that address", []string{"neighbour=ok", "session=failed", "regions=ok"}},
		"nobody":       {nil, "10.77.0.99" + short, 4, "nobody answers for 10.77.0.99", "check the address", []string{"neighbour=failed", "port=left out"}},
		"no route":     {nil, "192.0.2.1" + short, 5, "no route", "ip route add", []string{"route=failed"}},
		"its own MAC":  {nil, "$OWN" + short, 5, "is this interface's own address", "of the peer", []string{"addresses=failed"}},
		"no such MAC":  {nil, "02:00:00:00:00:77" + short, 4, "no host with 02:00:00:00:00:77", "ip link", []string{"neighbour=doubtful", "session=failed"}},
		"no socket":    {nil, "10.77.0.2 --control /nowhere/x.sock" + short, 5, "no daemon is at /nowhere/x.sock", "start the daemon", []string{"daemon=failed", "session=left out"}},
		"no interface": {nil, "10.77.0.2 -i eth9" + short, 5, "no such interface", "ip link", []string{"interface=failed", "session=left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := testnet.NewPair(t, testnet.Options{})
			if c.serve != nil {
				serve(t, pair.B, c.serve...)
				// The neighbour has been spoken with before.
				testnet.IP(t, pair.A, "neigh replace 10.77.0.2 lladdr "+pair.B.MAC.String()+" dev veth0 nud reachable")
			}
			line := strings.NewReplacer("$P", pair.B.MAC.String(), "$OWN", pair.A.MAC.String()).Replace(c.line)
			r := diagnosed(t, pair.A, c.code, line)
			for _, s := range r.Steps {
				if c.serve != nil && strings.Contains(s.Remedy, "start xdpfabd") {
					t.Errorf("step %s: %s, though the daemon runs", s.Name, s.Remedy)
				}
			}
			verdicts(t, &r, c.wants...)
			if !strings.Contains(r.Cause, c.cause) || !strings.Contains(r.Remedy, c.remedy) {
				t.Errorf("cause %q, remedy %q; want %q and %q", r.Cause, r.Remedy, c.cause, c.remedy)
			}
		})
	}
}

// Long packets that a switch drops without a word.
func TestDiagnoseMTU(t *testing.T) {
	testnet.Require(t)
	t.Parallel()
	net := testnet.NewStar(t, 2, testnet.Options{})
	a, b := net.Sides[0], net.Sides[1]
	serve(t, b, "--region", "r=64KiB")
	hub, port := net.Port(0)
	put := func() *process {
		return xdpfab(t, a, []string{"put", b.MAC.String(), "-", "--region", "r", "-i", a.IfName, "--timeout", "2s"},
			input(strings.Repeat("x", 65536)))
	}
	for mtu, want := range map[int][2]string{
		1492: {"1500, are lost on the way; those of 1280 pass", "mtu N"},
		1000: {"1500, are lost on the way to the peer; those of 984 pass", "mtu 984 at both ends, which ends IPv6 there, or"},
	} {
		testnet.IP(t, hub, fmt.Sprintf("link set %s mtu %d", port, mtu))
		r := diagnosed(t, a, 1, b.MAC.String()+patient)
		verdicts(t, &r, "session=ok", "round trip=ok", "regions=ok", "queues=ok", "MTU=failed")
		if !strings.Contains(r.Cause, want[0]) || !strings.Contains(r.Remedy, want[1]) {
			t.Errorf("MTU %d: cause %q, remedy %q", mtu, r.Cause, r.Remedy)
		}
	}
	testnet.IP(t, hub, "link set "+port+" mtu 1300")
	put().wants(0) // in short frames

	// A command whose session has begun before the silence names the cause as well.
	testnet.IP(t, hub, "link set "+port+" mtu 1000")
	m := mistake{name: "long packets get lost", code: 3, wrong: "outcome unknown: peer does not answer", want: "packets as long as the MTU are lost",
		remedy: "set the MTU of both ends to the least on the way"}
	m.judge(t, put())
}
