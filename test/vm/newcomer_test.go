// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/test/vm/guest"
)

var update = flag.Bool("update", false, "write docs/transcripts/newcomer.txt anew")

// newcomerFile is the transcript, of sections that begin with a title.
const newcomerFile = "../../docs/transcripts/newcomer.txt"

const aboutNewcomer = `A newcomer's first minutes: what is typed on a fresh Debian 12, and what it answers.

"make test-newcomer" types it, and fails if anything is answered that is not here; addresses, figures and
times may differ. The Debian is what debootstrap's minimal variant has, with systemd, udev and iproute2;
xdpfab's package comes from "make deb", not compressed, and nothing else is fetched. It is a virtual machine whose
instructions QEMU translates, on processors that other work shared: many times slower than a real one. The
seconds before each command are what it took there. server has 10.0.0.2, and client, a network namespace of
the same machine, 10.0.0.1, each on an eth0; # is root's prompt, and $ that of a user without privileges. A
daemon's log is shown without its times, and dpkg's progress is left out.
`

// chapter is a section: a title, and who types what. A line that ends in & starts a
// daemon in a terminal of its own, and ^C ends it.
type chapter struct {
	title string
	lines []string
}

// newcomer has README's lines in its order; TestNewcomerReadsReadme holds that.
var newcomer = []chapter{
	{"Install", []string{
		"server# apt install ./xdpfab_*.deb",
		"server# xdpfab --version",
	}},
	{"Nothing runs yet", []string{
		"server# xdpfab stat",
		"client# xdpfab list 10.0.0.2",
	}},
	{"The node with the memory", []string{
		"server# xdpfab info eth0 | grep -E '^(driver|resident|xdpfab)'",
		"server# xdpfabd --interface eth0 --region counters=64KiB --region hot=4KiB:resident &",
		"server# xdpfab stat",
		"server# xdpfab stat peers --sort resent",
		"server# xdpfab region create scores=1MiB",
	}},
	{"Another node", []string{
		"client# xdpfab info eth0",
		"client# xdpfab info --advise eth0",
		"client# xdpfab diagnose 10.0.0.2",
		"client# xdpfab list 10.0.0.2",
		"client# xdpfab atomic sum uint64 1 --peer 10.0.0.2 --region counters",
		"client# xdpfab atomic read uint64 --peer 10.0.0.2 --region counters",
		"client# xdpfab atomic sum uint64 1 --peer 10.0.0.2 --region hot",
		"client# xdpfab get 10.0.0.2 saved --region counters",
		"client# xdpfab put 10.0.0.2 saved --region counters",
		"client# xdpfab ping 10.0.0.2 --count 1000",
		"client# xdpfab bench 10.0.0.2 --region counters --duration 1s",
		"client# xdpfab config",
		"client$ xdpfab atomic sum uint64 1 --peer 10.0.0.2 --region counters",
	}},
	{"Mistakes", []string{
		"client# xdpfab list 10.0.0.9",
		"client# xdpfab atomic sum uint64 1 --peer 10.0.0.2 --region counter",
		"client# xdpfab atomic sum uint64 1 --region counters",
		"client$ xdpfabd --interface eth0 --region counters=64KiB",
		"server# xdpfabd --interface eth0 --region counters=64KiB",
	}},
	{"Stop", []string{
		"server# ^C",
		"client# xdpfab list 10.0.0.2",
		"client# xdpfab diagnose 10.0.0.2",
	}},
	{"As a service", []string{
		"server# systemctl enable --now xdpfabd@eth0",
		"client# xdpfab atomic sum uint64 1 --peer 10.0.0.2 --region counters",
		"server# xdpfabd --interface eth0 --region counters=64KiB",
		"server# systemctl reload xdpfabd@eth0",
		"client# xdpfab atomic sum uint64 1 --peer 10.0.0.2 --region counters",
		"server# systemctl stop xdpfabd@eth0",
		"server# apt remove -y xdpfab",
	}},
}

// TestNewcomer types what a newcomer types on a machine that has nothing but the package,
// and wants the answers of the transcript.
func TestNewcomer(t *testing.T) {
	if os.Getenv(debsEnv) == "" {
		t.Skip("takes a package, and a Debian: make test-newcomer")
	}
	text, err := os.ReadFile(newcomerFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	d := bootDebian(t, map[string]string{"/srv": os.Getenv(debsEnv)}, `ip netns add client
		ip link add eth0 type veth peer name eth0 netns client
		ip address add 10.0.0.2/24 dev eth0
		ip link set eth0 up
		ip -n client address add 10.0.0.1/24 dev eth0
		ip -n client link set eth0 up
		ip -n client link set lo up
		cp /srv/xdpfab_*.deb /tmp; chmod 644 /tmp/*.deb; mkdir -m 777 /home/client`)
	was, now := chapters(string(text)), aboutNewcomer
	for _, c := range newcomer {
		said := d.types(c.lines)
		t.Logf("== %s\n%s", c.title, said)
		if !*update && alike(said) != alike(was[c.title]) {
			t.Errorf("%s: said\n%s\nwant, but for figures and addresses (or give -args -update)\n%s\n%s", c.title, said,
				was[c.title], firstOther(said, was[c.title]))
		}
		now += "\n== " + c.title + "\n" + said
	}
	if *update {
		if err := os.WriteFile(newcomerFile, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// chapters are the texts of a transcript by title.
func chapters(file string) map[string]string {
	all := map[string]string{}
	for _, s := range strings.Split(file, "\n== ")[1:] {
		title, text, _ := strings.Cut(s, "\n")
		all[title] = strings.TrimRight(text, "\n") + "\n"
	}
	return all
}

// types types lines, and returns them with what is answered.
func (d *debian) types(lines []string) string {
	var all strings.Builder
	for _, line := range lines {
		prompt, command, _ := strings.Cut(line, " ")
		began := time.Now()
		said := d.typed(prompt, command)
		fmt.Fprintf(&all, "\n[%4.0f s] %s\n", time.Since(began).Seconds(), line)
		if said != "" {
			fmt.Fprintf(&all, "%s\n", said)
		}
	}
	return strings.TrimLeft(all.String(), "\n")
}

// typed types one command.
func (d *debian) typed(prompt, command string) string {
	d.t.Helper()
	switch daemon, serves := strings.CutSuffix(command, " &"); {
	case serves:
		return d.terminal(daemon)
	case command == "^C":
		d.run("kill -INT $(cat /run/terminal)")
		d.until("! kill -0 $(cat /run/terminal)")
		return daemonLines(d.run("tail -n +$(($(cat /run/shown) + 1)) /run/said"))
	}
	script := "cd /tmp; " + command
	if strings.HasPrefix(prompt, "client") {
		as := ""
		if strings.HasSuffix(prompt, "$") {
			as = "setpriv --reuid=65534 --regid=65534 --clear-groups "
		}
		// Another node has no control sockets of this one's.
		script = "export HOME=/home/client; exec ip netns exec client sh -c 'mount -t tmpfs none /run; cd; exec " +
			as + command + "'"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	// Both outputs go through one pipe, as to a terminal: through two a line of the one
	// may overtake one of the other.
	var out bytes.Buffer
	code, err := d.m.Run(ctx, guest.Command{Args: []string{"/bin/sh", "-c", "exec 2>&1; " + script}, Dir: "/root"}, &out, &out)
	if err != nil {
		d.t.Fatalf("%s %s: %v", prompt, command, err)
	}
	said := strings.TrimSpace(trailing.ReplaceAllString(noTerminal.ReplaceAllString(out.String(), ""), ""))
	if code != 0 {
		said += fmt.Sprintf("\n(exit code %d)", code)
	}
	return strings.TrimSpace(said)
}

// terminal starts a daemon, and returns what it says until it serves.
func (d *debian) terminal(command string) string {
	d.run("cd /tmp; setsid sh -c 'echo $$ >/run/terminal; exec " + command + "' >/run/said 2>&1 </dev/null &")
	d.until("xdpfab stat >/dev/null || ! kill -0 $(cat /run/terminal)")
	d.run("wc -l </run/said >/run/shown")
	return daemonLines(d.run("cat /run/said"))
}

// daemonLines are the lines of a log without their times.
func daemonLines(log string) string { return logTime.ReplaceAllString(log, "") }

var (
	logTime  = regexp.MustCompile(`(?m)^time=\S+ `)
	trailing = regexp.MustCompile(`(?m)[ \r]+$`)
	// What apt says because there is no terminal, and dpkg's progress, which ends in \r.
	noTerminal = regexp.MustCompile(`(?m)^(.*\r|WARNING: apt does not have.*\n)`)
)

// What differs from one run to the next: lines that a faster machine has not, and then
// addresses, keys, versions, figures with their units, and the room between words.
var (
	tried   = regexp.MustCompile(`, nor frames to [0-9a-f:]{17}`) // if there was time for it
	seldom  = regexp.MustCompile(`(?m)^([0-9]+ s: [0-9]+ round trips|[a-z]+(_[a-z]+)+ +[0-9]+$|\nxdp_… count).*\n`)
	differs = []*regexp.Regexp{
		regexp.MustCompile(`([0-9a-f]{2}:){5}[0-9a-f]{2}`),
		regexp.MustCompile(`fe80:[0-9a-f:]*(/64)?`),
		regexp.MustCompile(`0x[0-9a-f]+`),
		regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+[-~][0-9A-Za-z.+~_]+`),
		regexp.MustCompile(`[0-9]+[hm][0-9hms.]+s\b`),
		regexp.MustCompile(`[0-9][0-9.]*( ?(ns|µs|ms|s|m|bytes/s|[kKMG]?(iB|B)?(/s)?)\b)?`),
		regexp.MustCompile(`[ \t~]+|-{2,}`),
	}
)

// alike returns what has to be the same in every run.
func alike(s string) string {
	s = seldom.ReplaceAllString(s+"\n", "")
	s = tried.ReplaceAllString(s, "")
	for code := range 10 { // which are no figures that differ
		s = strings.ReplaceAll(s, fmt.Sprintf("(exit code %d)", code), "(exit code "+string(rune('a'+code))+")")
	}
	for _, v := range differs {
		s = v.ReplaceAllString(s, "~")
	}
	return joined.ReplaceAllString(s, "~")
}

var joined = regexp.MustCompile(`~+`)

// firstOther shows the first lines that differ, without what may differ.
func firstOther(is, want string) string {
	a, b := strings.Split(alike(is), "\n"), strings.Split(alike(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// A transcript is the same on a faster machine, and not if anything else is said.
func TestAlike(t *testing.T) {
	const is = "[   6 s] client# xdpfab ping 10.0.0.2 --count 1000\n1 s: 129 round trips, p50 4305 µs\n" +
		"1000 round trips in 4.518 s, 0 lost\n  min     p50\n  695 µs  10.4 ms\n" +
		"367 KiB/s, 193/s, up 1m13s\nCOUNTER  TOTAL\nxdp_pass_other     1\n\nxdp_… count since the program\n(exit code 4)\n"
	const same = "[  16 s] client# xdpfab ping 10.0.0.2 --count 1000\n" +
		"1000 round trips in 312 ms, 3 lost\n  min   p50\n  9 µs  1.4 ms\n" +
		"852 bytes/s, 7.1 k/s, up 9s\nCOUNTER  TOTAL\n(exit code 4)\n"
	if alike(is) != alike(same) {
		t.Error(firstOther(is, same))
	}
	for _, other := range []string{strings.Replace(is, "code 4", "code 5", 1), strings.Replace(is, "lost", "found", 1),
		is + "more\n"} {
		if alike(is) == alike(other) {
			t.Errorf("taken for the same: %s", other)
		}
	}
}

// The newcomer types the command lines of README, each as it stands and in its order.
func TestNewcomerReadsReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "\n## On the command line\n")
	page, _, _ = strings.Cut(page, "\n## ")
	var typed []string
	for _, c := range newcomer {
		typed = append(typed, c.lines...)
	}
	all, found := strings.Join(typed, "\n")+"\n", 0
	for line := range strings.Lines(page) {
		command, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "sudo "), "#")
		command = strings.TrimSpace(command)
		output := !strings.HasPrefix(command, "xdpfab ") && !strings.HasPrefix(command, "xdpfabd ")
		if output || !strings.HasPrefix(line, "    ") || strings.Contains(command, "--guest") {
			continue // rules are for users that a fresh machine lacks
		}
		at := strings.Index(all, " "+command+"\n")
		if at < 0 {
			at = strings.Index(all, " "+command+" &\n")
		}
		if at < 0 {
			t.Errorf("the newcomer does not type, here: %s", command)
			continue
		}
		all, found = all[at+1:], found+1
	}
	if found < 14 {
		t.Errorf("README has %d commands that the newcomer types, want at least 14", found)
	}
}
