// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// nobody is a user and a group without rights, which the programs here are.
const nobody = 65534

// patience is how long a program may take, and a daemon for its first answer.
var patience = 5 * time.Minute * testnet.Slow

const regionLen = 8 << 20

// sanitizerEnv names the sanitizers of gcc that the provider and the programs are built
// with, as in -fsanitize: make provider-check sets it.
const sanitizerEnv = "XDPFAB_SANITIZE"

// sanitizing returns the flags of gcc for that.
func sanitizing() string {
	if of := os.Getenv(sanitizerEnv); of != "" {
		return "-O1 -g -fno-sanitize-recover=all -fsanitize=" + of
	}
	return "-O2 -g"
}

// library builds the provider, once, where nobody can read it, and returns its folder.
var library = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(folder, "fabric")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(folder, 0o755)); err != nil {
		return "", err
	}
	out, err := exec.Command("make", "-s", "-j2", "-C", source, "OUT="+dir, "CFLAGS="+sanitizing()).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make: %w\n%s", err, out)
	}
	return dir, testnet.Programs(dir, "xdpfabd")
})

// world is two daemons on a veth, and programs of libfabric that are their guests.
type world struct {
	t       *testing.T
	dir     string
	net     *testnet.Pair
	sockets [2]string
	daemons [2]*exec.Cmd
	params  []string // NAME=VALUE, of programs
}

// newWorld starts daemons with these flags besides the usual ones.
func newWorld(t *testing.T, flags ...string) *world {
	t.Helper()
	return newWorldOn(t, testnet.Options{}, flags...)
}

func newWorldOn(t *testing.T, o testnet.Options, flags ...string) *world {
	t.Helper()
	testnet.Require(t)
	for tool, what := range map[string]string{"gcc": "gcc libc6-dev", "make": "make", "fi_info": "libfabric-bin"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s: apt-get install %s", tool, what)
		}
	}
	if _, err := os.Stat("/usr/include/rdma/fabric.h"); err != nil {
		t.Skip("needs the headers of libfabric: apt-get install libfabric-dev")
	}
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, net: testnet.NewPair(t, o)}
	for i := range w.daemons {
		folder, err := os.MkdirTemp("", "xdpfab-sock")
		if err == nil {
			err = os.Chmod(folder, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(folder) })
		w.sockets[i] = filepath.Join(folder, "d.sock")
		w.serve(i, flags...)
	}
	return w
}

// serve starts the daemon of a side.
func (w *world) serve(i int, flags ...string) {
	w.t.Helper()
	side := []*testnet.Side{w.net.A, w.net.B}[i]
	c := side.Command(filepath.Join(w.dir, "xdpfabd"), append(flags, "--interface", side.IfName,
		"--control", w.sockets[i], "--socket-mode", "0666", "--guest", "allow:user=65534",
		"--region", fmt.Sprintf("r=%d", regionLen), "--log-level", "debug")...)
	const most = 64 << 10 // bytes of its log that a test shows which fails
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.daemons[i] = c
	w.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
		if w.t.Failed() {
			w.t.Logf("daemon %d:\n%s", i, said.Bytes()[max(0, said.Len()-most):])
		}
	})
	w.status(i)
}

// status waits for the daemon to answer.
func (w *world) status(i int) control.Status {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		c, err := control.Dial(w.sockets[i])
		if err == nil {
			var s control.Status
			if s, err = c.Status(ctx); err == nil {
				c.Close()
				return s
			}
			c.Close()
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("daemon %d: %v", i, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// key returns the key of the daemon's region.
func (w *world) key(i int) string {
	w.t.Helper()
	for _, r := range w.status(i).Regions {
		if r.Name == "r" {
			return fmt.Sprint(r.Key)
		}
	}
	w.t.Fatal("the daemon has no region")
	return ""
}

// program builds a program of testdata.
func (w *world) program(name string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	args := append(strings.Fields(sanitizing()), "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", path,
		"testdata/"+name+".c", "testdata/fabric.c", "-pthread", "-lfabric")
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("gcc: %v\n%s", err, out)
	}
	return path
}

// running is a program that has been started.
type running struct {
	*exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said bytes.Buffer
}

// start starts a program as nobody, as a guest of a daemon.
func (w *world) start(daemon int, path string, args ...string) *running {
	w.t.Helper()
	return w.run(daemon, &syscall.Credential{Uid: nobody, Gid: nobody}, path, args...)
}

// startInside does so in the network namespace of the daemon, for programs that need its
// addresses for something else, too.
func (w *world) startInside(daemon int, path string, args ...string) *running {
	w.t.Helper()
	side := [...]*testnet.Side{w.net.A, w.net.B}[daemon]
	id := fmt.Sprint(nobody)
	return w.run(daemon, nil, "ip", append([]string{"netns", "exec", side.Name, "setpriv", "--reuid", id, "--regid", id,
		"--clear-groups", path}, args...)...)
}

func (w *world) run(daemon int, as *syscall.Credential, path string, args ...string) *running {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	p := &running{Cmd: exec.CommandContext(ctx, path, args...)}
	p.Stderr = &p.said
	p.Dir = "/"
	p.Env = []string{"PATH=" + os.Getenv("PATH"), "FI_PROVIDER_PATH=" + w.dir, "XDPFAB_CONTROL=" + w.sockets[daemon],
		"FI_LOG_LEVEL=warn", "FI_LOG_PROV=xdpfab"}
	p.Env = append(p.Env, w.params...)
	p.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	in, err1 := p.StdinPipe()
	out, err2 := p.StdoutPipe()
	if err1 != nil || err2 != nil {
		w.t.Fatal(err1, err2)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.Start(); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// leastMemory are parameters for as little as a daemon takes.
var leastMemory = []string{"FI_XDPFAB_ENTRIES=16", "FI_XDPFAB_ARENA=65536", "FI_XDPFAB_ARRIVALS=65536", "FI_XDPFAB_YIELD=1"}

// shared returns the bytes that a program shares with its daemon.
func (w *world) shared(p *running) int64 {
	w.t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.Process.Pid))
	for _, f := range files {
		if name, _ := os.Readlink(f); strings.Contains(name, "xdpfab rings") {
			if info, err := os.Stat(f); err == nil {
				return info.Size()
			}
		}
	}
	w.t.Fatalf("it shares no memory: %v", err)
	return 0
}

// line returns the next line that a program prints.
func (w *world) line(p *running) string {
	w.t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil {
		err = p.Wait()
		w.t.Fatalf("%s: %v\n%s", filepath.Base(p.Path), err, tail(p.said.Bytes()))
	}
	return strings.TrimSpace(s)
}

// end waits for the end of a program, which has to succeed, and returns what it has still
// printed.
func (w *world) end(p *running) string {
	w.t.Helper()
	rest, _ := io.ReadAll(p.out)
	if err := p.Wait(); err != nil {
		w.t.Errorf("%s %v: %v\n%s%s", filepath.Base(p.Path), p.Args[1:], err, rest, tail(p.said.Bytes()))
	}
	return strings.TrimSpace(string(rest))
}

// fi_info finds the daemon's interface, once for each address and alone: no other
// provider is layered above this one.
func TestInfo(t *testing.T) {
	if of := os.Getenv(sanitizerEnv); of != "" {
		t.Skip("fi_info has not been built with sanitizers")
	}
	w := newWorld(t)
	all := w.end(w.start(0, "fi_info"))
	if n := len(regexp.MustCompile(`(?m)^provider: xdpfab$`).FindAllString(all, -1)); n == 0 || strings.Contains(all, "xdpfab;") {
		t.Errorf("%d infos, or one that is layered:\n%s", n, all)
	}
	one := w.end(w.start(0, "fi_info", "-p", "xdpfab", "-v", "-a", "FI_SOCKADDR_IN"))
	for _, want := range []string{"src_addr: fi_sockaddr_in://" + w.net.A.IP4.String() + ":0", "type: FI_EP_RDM",
		"mr_mode: [  ]", "name: " + w.net.A.IfName, "inject_size: 4096", "max_msg_size: 9223372036854775807", "FI_ATOMIC",
		"FI_REMOTE_WRITE", "FI_RMA_EVENT", "FI_TRIGGER", "FI_ORDER_ATOMIC_WAW"} {
		if !strings.Contains(one, want) {
			t.Errorf("lacks %q:\n%s", want, one)
		}
	}
	if err := w.start(0, "fi_info", "-p", "xdpfab", "-t", "FI_EP_MSG").Wait(); err == nil {
		t.Error("an info of connected endpoints")
	}
	exported, err := exec.Command("nm", "-D", "--defined-only", filepath.Join(w.dir, "libxdpfab-fi.so")).Output()
	if f := strings.Fields(string(exported)); err != nil || len(f) != 3 || f[2] != "fi_prov_ini" {
		t.Errorf("exported: %v %q: want fi_prov_ini alone", err, exported)
	}
	for kind, network := range map[string]string{"ipv4": w.net.A.IP4.String(), "ipv6": "fe80::"} {
		w.params = []string{"FI_XDPFAB_ADDR=" + kind}
		all := strings.Split(w.end(w.start(0, "fi_info", "-p", "xdpfab", "-v")), "fi_info:\n")
		first := all[min(1, len(all)-1)]
		if !strings.Contains(first, "fi_sockaddr_in") || strings.Contains(first, "fi_sockaddr_in6") != (kind == "ipv6") {
			t.Errorf("with %q the first address is not of %s: %q", w.params, network, all)
		}
	}
	w.params = []string{"FI_XDPFAB_GIVE_UP=2000000000"}
	late := w.start(0, w.program("adder"), w.net.B.IP4.String(), w.key(1), "0")
	if err := late.Wait(); err == nil || !strings.Contains(late.said.String(), "want at most 4h0m0s") {
		t.Errorf("a give-up time of 23 days: %v\n%s", err, tail(late.said.Bytes()))
	}
	w.params = nil
	params := w.end(w.start(0, "fi_info", "-g", "xdpfab"))
	for _, name := range []string{"CONTROL", "IFACE", "ENTRIES", "ARENA", "ARRIVALS", "ADDR", "GIVE_UP", "YIELD"} {
		if !strings.Contains(params, "# FI_XDPFAB_"+name+": ") {
			t.Errorf("no parameter %s:\n%s", name, params)
		}
	}
}

// Two programs exchange messages of many lengths, both ways at a time: between nodes, and
// within one. Each operates on memory of the other, too. With as little shared memory as
// there may be everything has to wait for room.
func TestMessages(t *testing.T) {
	w := newWorld(t)
	path := w.program("messages")
	for name, second := range map[string]struct {
		daemon int
		ip     string
		params []string
	}{
		"two nodes":    {1, w.net.B.IP4.String(), nil},
		"one node":     {0, w.net.A.IP4.String(), nil},
		"least memory": {1, w.net.B.IP4.String(), leastMemory},
	} {
		t.Run(name, func(t *testing.T) {
			w.params = second.params
			a := w.start(0, path, "101", second.ip, "102")
			b := w.start(second.daemon, path, "102", w.net.A.IP4.String(), "101")
			for _, p := range []*running{a, b} {
				if got := w.line(p); got != "ready" {
					t.Fatal(got)
				}
				if n := w.shared(p); (n < 200<<10) != (second.params != nil) {
					t.Errorf("it shares %d bytes with its daemon, and has the parameters %q", n, second.params)
				}
			}
			for _, p := range []*running{a, b} {
				fmt.Fprintln(p.in)
			}
			for _, p := range []*running{a, b} {
				if got := w.end(p); got != "ok" {
					t.Errorf("said %q", got)
				}
			}
		})
	}
}

// Atomics, reads and writes on a region of the other daemon do what they say, once: three
// programs that add at a time lose nothing.
func TestAtomics(t *testing.T) {
	w := newWorld(t)
	path := w.program("atomics")
	const adds = 20000
	ip, key := w.net.B.IP4.String(), w.key(1)
	if got := w.end(w.start(0, path, ip, key, fmt.Sprint(regionLen), fmt.Sprint(adds))); got != fmt.Sprint(adds-1) {
		t.Errorf("the last value found is %q, want %d", got, adds-1)
	}
	all := []*running{}
	adder := w.program("adder")
	for range 3 {
		all = append(all, w.start(0, adder, ip, key, fmt.Sprint(adds)))
	}
	for _, p := range all {
		w.end(p)
	}
	if got, want := w.end(w.start(0, adder, ip, key, "0")), fmt.Sprint(4*adds); got != want {
		t.Errorf("the sum is %q, want %s", got, want)
	}
}

// The end of the daemon ends operations and receives, with FI_ENETDOWN.
func TestDaemonDies(t *testing.T) {
	w := newWorld(t)
	p := w.start(0, w.program("ends"), "death", w.net.B.IP4.String(), w.key(1))
	if got := w.line(p); got != "ready" {
		t.Fatal(got)
	}
	if err := w.daemons[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := w.end(p); got != "ok" {
		t.Errorf("said %q", got)
	}
}

// takeOver has the next daemon of a side take the place of the present one, which ends.
func (w *world) takeOver(i int, flags ...string) {
	w.t.Helper()
	former := w.daemons[i]
	w.serve(i, append(flags, "--takeover")...)
	if err := former.Wait(); err != nil {
		w.t.Errorf("the daemon that was taken over: %v", err)
	}
}

// Programs do not notice that their daemon, or that of their peer, is taken over: their
// sum is exact. One that is stopped, and killed after a takeover, does not hold up the
// others.
func TestTakeover(t *testing.T) {
	w := newWorld(t, "--give-up", patience.String()) // a busy machine may take seconds to open an interface
	adder := w.program("adder")
	ip, key := w.net.B.IP4.String(), w.key(1)
	sum := func() (n int) {
		t.Helper()
		got := w.end(w.start(0, adder, ip, key, "0"))
		if _, err := fmt.Sscan(got, &n); err != nil {
			t.Fatal(got, err)
		}
		return n
	}
	grows := func() {
		t.Helper()
		end := time.Now().Add(patience)
		for was := sum(); sum() == was; {
			if time.Now().After(end) {
				t.Fatalf("the sum stays at %d", was)
			}
		}
	}
	doomed := w.start(0, adder, ip, key, "-")
	grows()
	if err := doomed.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.takeOver(0)
	if err := doomed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = doomed.Wait()
	before := sum()
	for later := sum(); later != before; later = sum() { // what the daemon had taken runs still
		before = later
	}
	all := []*running{w.start(0, adder, ip, key, "-"), w.start(1, adder, ip, key, "-")}
	for i := range 2 {
		grows()
		w.takeOver(i)
	}
	grows()
	want := before
	for _, p := range all {
		p.in.Close()
		var n int
		if _, err := fmt.Sscan(w.end(p), &n); err != nil || n == 0 {
			t.Errorf("a program has added %d times: %v", n, err)
		}
		want += n
	}
	if got := sum(); got != want {
		t.Errorf("the sum is %d, want %d", got, want)
	}
}

// A child of a fork cannot use what its parent has opened.
func TestFork(t *testing.T) {
	w := newWorld(t)
	if got := w.end(w.start(0, w.program("ends"), "fork", w.net.B.IP4.String(), w.key(1))); got != "ok" {
		t.Errorf("said %q", got)
	}
}

// A program that sleeps makes all progress first that its operations need, also when
// their peer has just become known, or another thread has posted them.
func TestAsleep(t *testing.T) {
	w := newWorld(t)
	if got := w.end(w.start(0, w.program("ends"), "asleep", w.net.B.IP4.String(), w.key(1))); got != "ok" {
		t.Errorf("said %q", got)
	}
}

// With FI_PROGRESS_AUTO a message comes while its program makes no call.
func TestAutoProgress(t *testing.T) {
	w := newWorld(t)
	path := w.program("ends")
	to := w.start(0, path, "auto", w.net.B.IP4.String(), w.key(1))
	if got := w.line(to); got != "ready" {
		t.Fatal(got)
	}
	from := w.start(1, path, "send", w.net.A.IP4.String(), w.key(1))
	for _, p := range []*running{from, to} {
		if got := w.end(p); got != "ok" {
			t.Errorf("said %q", got)
		}
	}
}
