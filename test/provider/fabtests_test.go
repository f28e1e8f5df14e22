// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// fabtestsEnv names the folder where scripts/fabtests has built libfabric's own tests.
const fabtestsEnv = "XDPFAB_FABTESTS"

// fabtestsShortEnv names the folder where it has built a few of them for what is
// installed.
const fabtestsShortEnv = "XDPFAB_FABTESTS_SHORT"

// A test of libfabric exits with one of these if the provider lacks what it needs.
var notRun = []int{int(syscall.ENODATA), 256 - int(syscall.ENODATA), int(syscall.ENOSYS)}

// rxm is what libfabric has for endpoints of datagrams where there is Ethernet alone.
const rxm = "tcp;ofi_rxm"

// fabtests returns the folder where libfabric's own tests are.
func fabtests(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(fabtestsEnv)
	if dir == "" {
		t.Skip("make fabtests builds libfabric's own tests, and runs them")
	}
	return dir
}

// eachFabtest calls f with each test of a table, and how it has to end.
func eachFabtest(t *testing.T, table string, f func(t *testing.T, want string, test []string)) {
	t.Helper()
	lines, err := os.ReadFile("testdata/" + table)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		line, _, _ = strings.Cut(line, "#")
		if want, test, _ := strings.Cut(strings.TrimSpace(line), " "); want != "" {
			t.Run(test, func(t *testing.T) { f(t, want, strings.Fields(test)) })
		}
	}
}

// Each of libfabric's own tests ends as testdata/fabtests.txt says. How it ends with rxm,
// which runs beside, is printed.
func TestFabtests(t *testing.T) {
	dir := fabtests(t)
	for _, table := range []string{"fabtests_short.txt", "fabtests.txt"} {
		eachFabtest(t, table, func(t *testing.T, want string, test []string) {
			w := newWorld(t)
			if got := w.fabtest(dir, "xdpfab", test); got.end != want {
				t.Errorf("%s, want %s", got.end, want)
			}
			t.Logf("%s: %s", rxm, w.fabtest(dir, rxm, test).end)
		})
	}
}

// The shortest of them, built against the libfabric that is installed: make test builds
// them if it gets their source.
func TestFabtestsShort(t *testing.T) {
	dir := os.Getenv(fabtestsShortEnv)
	if dir == "" {
		t.Skip("make test builds libfabric's own tests if it gets their source")
	}
	if _, err := os.Stat(filepath.Join(dir, "built")); err != nil {
		t.Skip("scripts/fabtests-short had no source of them, and has said why")
	}
	if of := os.Getenv(sanitizerEnv); of != "" {
		t.Skip("they have not been built with sanitizers")
	}
	w := newWorld(t)
	where := filepath.Join(w.dir, "fabtests") // nobody may not read every folder of root's
	if out, err := exec.Command("cp", "-RT", dir, where).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	eachFabtest(t, "fabtests_short.txt", func(t *testing.T, want string, test []string) {
		if got := w.fabtest(where, "xdpfab", test); got.end != want {
			t.Errorf("%s, want %s", got.end, want)
		}
	})
}

// All atomics that libfabric's test has do what they say, with counters and
// completions, in the 262 pairs of operation and datatype that are possible.
func TestFabtestsAtomics(t *testing.T) {
	dir := fabtests(t)
	pair := regexp.MustCompile(`(?m)^FI_\w+_lat\b`)
	for provider, want := range map[string]int{"xdpfab": 262, rxm: 191} {
		for _, more := range []string{"", " -U"} {
			t.Run(provider+more, func(t *testing.T) {
				got := newWorld(t).fabtest(dir, provider, strings.Fields("fi_rdm_atomic -I 10 -o all -z all -v"+more))
				pairs := map[string]bool{}
				for _, p := range pair.FindAllString(string(got.said), -1) {
					pairs[p] = true
				}
				if got.end != "pass" || len(pairs) != want {
					t.Errorf("%s, %d pairs, want pass and %d", got.end, len(pairs), want)
				}
			})
		}
	}
}

// Each call of messages, of transfers and of atomics does what it says, with both kinds
// of completion and of progress, in the combinations of testdata/ubertest.
func TestUbertest(t *testing.T) {
	dir := fabtests(t)
	for name, n := range map[string]int{"msg": 24, "tagged": 24, "rma": 18, "atomic": 20} {
		for _, provider := range []string{"xdpfab", rxm} {
			t.Run(name+" "+provider, func(t *testing.T) {
				config, err := os.ReadFile("testdata/ubertest/" + name + ".cfg")
				path := filepath.Join(folder, "ubertest.cfg")
				if err == nil {
					err = os.WriteFile(path, bytes.ReplaceAll(config, []byte("PROVIDER"), []byte(provider)), 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
				got := newWorld(t).ubertest(dir, path)
				want := fmt.Sprintf("Success: %d\nSkipped: 0\nENODATA: 0\nENOSYS : 0\nEIO    : 0\nERROR  : 0", n)
				if got.end != "pass" || !bytes.Contains(got.said, []byte(want)) {
					t.Errorf("%s, want %d that succeed:\n%s", got.end, n, tail(got.said))
				}
			})
		}
	}
}

// ubertest runs fi_ubertest, whose configuration names the provider.
func (w *world) ubertest(dir, config string) ending {
	w.t.Helper()
	server, path := w.net.A.IP4.String(), filepath.Join(dir, "bin", "fi_ubertest")
	s := w.listen(0, path, []string{"-x", "-s", server})
	w.serves(s)
	c := w.listen(1, path, []string{"-u", config, "-s", w.net.B.IP4.String(), server})
	return worst(c.result(w.t), s.result(w.t))
}

// ending is how a test of libfabric has ended: pass, notrun or fail; and what it said. It
// is early if the client has come before the server's endpoint served: libfabric's own
// tests begin their servers seconds before.
type ending struct {
	end   string
	said  []byte
	early bool
}

// worst returns how both sides have ended: where one lacks something, the other one
// fails.
func worst(client, server ending) ending {
	for _, end := range []string{"notrun", "fail"} {
		if client.end == end || server.end == end {
			return ending{end: end, said: client.said}
		}
	}
	return client
}

// fabtest runs a test of libfabric, and returns pass, notrun or fail: on both nodes, or
// with ALONE on one, whose address takes the place of SERVER.
func (w *world) fabtest(dir, provider string, test []string) ending {
	w.t.Helper()
	w.empty()
	server, client := w.net.A.IP4.String(), w.net.B.IP4.String()
	path := filepath.Join(dir, "bin", test[0])
	args := append([]string{"-p", provider}, test[1:]...)
	if i := slices.Index(args, "ALONE"); i >= 0 {
		args = slices.Delete(args, i, i+1)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "SERVER", server)
		}
		return w.listen(0, path, args).result(w.t)
	}
	args = append(args, "-s")
	s := w.listen(0, path, append(slices.Clone(args), server))
	w.serves(s)
	args = append(args, client, server)
	c := w.listen(1, path, args).result(w.t)
	for n := 0; c.early && n < 20; n++ { // the server knows nothing of it
		c = w.listen(1, path, args).result(w.t)
	}
	return worst(c, s.result(w.t))
}

// empty waits until the daemons have noticed the ends of all programs before: their
// endpoints must not be taken for those of the next ones.
func (w *world) empty() {
	w.t.Helper()
	for i := range w.daemons {
		testnet.Eventually(w.t, "no program is attached", func() bool { return len(w.status(i).Guests) == 0 })
	}
}

// tooEarly is what a client says whose server does not serve yet: with libfabric, or over
// the TCP connection that some tests have besides.
var tooEarly = regexp.MustCompile(`the peer has no such endpoint: it never ran|connect: Connection refused`)

// listened is a program whose output is read all the time.
type listened struct {
	*running
	said chan []byte // all of it, at its end
}

func (w *world) listen(daemon int, path string, args []string) *listened {
	w.t.Helper()
	l := &listened{w.startInside(daemon, path, args...), make(chan []byte, 1)}
	go func() {
		said, _ := io.ReadAll(l.out)
		l.said <- said
	}()
	return l
}

// serves waits until peers can reach an endpoint of the program, it listens to the other
// one's TCP connection, or has ended. An endpoint that only exists refuses what comes.
func (w *world) serves(l *listened) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		reachable := func(g control.Guest) bool { return g.Serving > 0 }
		if len(l.said) > 0 || slices.ContainsFunc(w.status(0).Guests, reachable) || w.listens(0) {
			return
		}
	}
	w.t.Fatalf("%v serves nothing after %v", l.Args, patience)
}

// listens reports whether a TCP socket listens in the network namespace of a daemon: a
// program that has just been started is in it a little later.
func (w *world) listens(daemon int) bool {
	for _, name := range []string{"tcp", "tcp6"} {
		sockets, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", w.daemons[daemon].Process.Pid, name))
		if err == nil && strings.Contains(string(sockets), " 0A ") { // TCP_LISTEN
			return true
		}
	}
	return false
}

// result waits for the end of a test of libfabric.
func (l *listened) result(t *testing.T) ending {
	t.Helper()
	said := <-l.said
	err := l.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return ending{end: "pass", said: said}
	case errors.As(err, &exit) && slices.Contains(notRun, exit.ExitCode()):
		return ending{end: "notrun", said: said}
	}
	t.Logf("%v: %v\n%s%s", l.Args, err, tail(said), tail(l.running.said.Bytes()))
	early := tooEarly.Match(said) || tooEarly.Match(l.running.said.Bytes())
	return ending{"fail", said, early}
}
