// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

var update = flag.Bool("update", false, "write docs/transcripts/interfaces.txt anew, as far as the kernel has what it is about")

// transcripts is the file, of sections that begin with a title.
const transcripts = "../../docs/transcripts/interfaces.txt"

const aboutTranscripts = `What a newcomer types on interfaces that are more than a NIC, and what the programs say.

TestTranscript in test/e2e types it on two hosts that a veth joins: server has 10.77.0.2, and client has
10.77.0.1. It checks that everything is said so, except for addresses, figures and the time. It also has
the daemon use a control socket of its own, and the clients wait longer. See interfaces.md.
`

// talk is a section: who types what. A line that ends in & starts a daemon.
type talk struct {
	title string
	setup []string // of the server, for ip(8)
	open  string   // the server's interface
	lines []string
}

const clientAdds = "client# xdpfab atomic sum uint64 5 --peer 10.77.0.2 -i eth0 --region counters"

var talks = []talk{
	{"A bond of eth0 and eth1", []string{"link add bond0 type bond mode active-backup miimon 20",
		"link set eth0 down", "link set eth0 master bond0", "link set eth1 master bond0", "link set eth0 up",
		"link set bond0 up", "addr flush dev eth0", "addr add 10.77.0.2/24 dev bond0"}, "bond0", []string{
		"server# xdpfabd --interface bond0 --xdp native --region counters=64KiB",
		"server# xdpfab info bond0 | grep -E 'consists|served|use '",
		"server# xdpfabd --interface bond0 --region counters=64KiB &",
		clientAdds}},
	{"A port of a bridge", []string{"link add br0 type bridge", "link set eth0 master br0", "link set br0 up",
		"addr flush dev eth0", "addr add 10.77.0.2/24 dev br0"}, "eth0", []string{
		"server# xdpfabd --interface br0 --region counters=64KiB",
		"server# xdpfab info eth0 | grep -E 'belongs|served|use '",
		"server# xdpfabd --interface eth0 --region counters=64KiB &",
		clientAdds}},
	{"A pod, whose programs have no privilege", nil, "eth0", []string{
		"server$ xdpfabd --interface eth0 --region counters=64KiB",
		"server$ xdpfabd --interface eth0 --transport udp --region counters=64KiB &",
		clientAdds}},
	{"An MTU of 9000", []string{"link set eth0 mtu 9000"}, "eth0", []string{
		"server# xdpfab info eth0 | grep -E '^MTU|buffers|use '",
		"server# xdpfabd --interface eth0 --region counters=64KiB &",
		clientAdds}},
}

// What the documents show of bonds, bridges, pods and large MTUs is what happens.
func TestTranscript(t *testing.T) {
	testnet.Require(t)
	testnet.SkipOnNICs(t, "what a veth and its driver say")
	if testnet.KernelBefore(t, 6, 6) {
		t.Skip("older kernels have no packets in several buffers, and say so")
	}
	text, err := os.ReadFile(transcripts)
	if err != nil {
		t.Fatal(err)
	}
	was, now := sections(string(text)), aboutTranscripts
	for _, k := range talks {
		t.Run(k.title, func(t *testing.T) {
			said := k.take(t)
			if !*update && masked(said) != masked(was[k.title]) {
				t.Errorf("said:\n%s\nwant, but for figures and addresses (or give -args -update):\n%s", said, was[k.title])
			}
			was[k.title] = said
		})
		now += "\n== " + k.title + "\n" + was[k.title]
	}
	if len(was) != len(talks) {
		t.Errorf("%s has %d sections, want %d", transcripts, len(was), len(talks))
	}
	if *update {
		if err := os.WriteFile(transcripts, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sections are the texts of a file by title.
func sections(file string) map[string]string {
	all := map[string]string{}
	for _, s := range strings.Split(file, "\n== ")[1:] {
		title, text, _ := strings.Cut(s, "\n")
		all[title] = strings.TrimRight(text, "\n") + "\n"
	}
	return all
}

// What differs from one machine to the next.
var varies = []*regexp.Regexp{
	regexp.MustCompile(`([0-9a-f]{2}:){5}[0-9a-f]{2}`), // MAC addresses
	regexp.MustCompile(`0x[0-9a-f]+`),
	regexp.MustCompile(`version=\S+|huge_umem=\w+|pages=\w+`),
	regexp.MustCompile(`[0-9]+`),
	regexp.MustCompile(` +`),
}

func masked(s string) string {
	for _, v := range varies {
		s = v.ReplaceAllString(s, "~")
	}
	return s
}

// take types the lines, and returns what was said.
func (k *talk) take(t *testing.T) string {
	net := testnet.NewPair(t, testnet.Options{MTU: 1500})
	server, client := *net.B, *net.A
	for _, s := range []*testnet.Side{&server, &client} {
		testnet.IP(t, s, "link set veth0 down", "link set veth0 name eth0", "link set eth0 up")
		s.IfName = "eth0"
	}
	testnet.IP(t, &server, "link add eth1 type veth peer name eth1 netns "+client.Name)
	k.build(t, &server)
	if strings.Contains(strings.Join(k.setup, " "), "mtu") {
		testnet.IP(t, &client, k.setup...)
	}
	server.IfName = k.open
	testnet.Running(t, &server)
	testnet.Running(t, &client)
	dir := t.TempDir()
	if strings.Contains(k.title, "no privilege") {
		dir = nobodysDir(t)
	}
	socket := filepath.Join(dir, socketName)
	var all strings.Builder
	for _, line := range k.lines {
		prompt, command, _ := strings.Cut(line, " ")
		side := map[bool]*testnet.Side{true: &server, false: &client}[strings.HasPrefix(prompt, "server")]
		said := typed(t, side, command, socket, strings.HasSuffix(prompt, "$"))
		fmt.Fprintf(&all, "\n%s\n%s\n", line, strings.ReplaceAll(said, socket, control.DefaultPath(k.open)))
	}
	return strings.TrimSpace(all.String()) + "\n"
}

func (k *talk) build(t *testing.T, server *testnet.Side) {
	t.Helper()
	if k.open == "bond0" {
		err := server.Do(func() error { return netlink.LinkAdd(netlink.NewLinkBond(netlink.LinkAttrs{Name: "tried0"})) })
		if errors.Is(err, unix.EOPNOTSUPP) {
			testnet.SkipUnlessVM(t, fmt.Errorf("this kernel has no bonds: %w", err))
		}
		testnet.IP(t, server, "link del tried0")
	}
	testnet.IP(t, server, k.setup...)
}

// typed runs a command, and returns its output without spaces at the ends. Of a daemon
// that serves it is what it says until then.
func typed(t *testing.T, side *testnet.Side, command, socket string, nobody bool) string {
	t.Helper()
	command, pattern, filtered := strings.Cut(command, " | grep -E ")
	command, serves := strings.CutSuffix(command, " &")
	args := strings.Fields(command)
	path := map[string]string{"xdpfab": xdpfabPath, "xdpfabd": xdpfabdPath}[args[0]]
	if path == xdpfabdPath {
		args = append(args, "--control", socket)
	}
	options := []option{env("NOTIFY_SOCKET=", "XDPFAB_CONTROL=")}
	if nobody {
		options = append(options, unprivileged)
	}
	p := start(t, side, path, args[1:], options...)
	if serves {
		n := &node{p, side, socket}
		n.ready()
		n.says("msg=region")
	} else {
		p.code()
	}
	var lines []string
	want := regexp.MustCompile(strings.Trim(pattern, "'"))
	for line := range strings.Lines(p.out.String() + p.err.String()) {
		line = strings.TrimRight(line, " \n")
		if _, rest, is := strings.Cut(line, " level="); is {
			line = "level=" + rest
		}
		if serves && !told.MatchString(line) || filtered && !want.MatchString(line) {
			continue
		}
		lines = append(lines, linkLocal.ReplaceAllString(line, ""))
	}
	return strings.Join(lines, "\n")
}

// told are the lines of a log that any machine has; others are about its processors, or
// about addresses that come meanwhile.
var told = regexp.MustCompile(`^level=(WARN|INFO msg=(serving|region)) `)

// linkLocal are addresses that come when the kernel has found that nobody else has them.
var linkLocal = regexp.MustCompile(` fe80:[0-9a-f:]+/64`)
