// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fabtestsEnv names the folder where scripts/fabtests has built libfabric's own tests.
const fabtestsEnv = "XDPFAB_FABTESTS"

// A test of libfabric exits with one of these if the provider lacks what it needs.
var notRun = []int{int(syscall.ENODATA), 256 - int(syscall.ENODATA), int(syscall.ENOSYS)}

// Each of libfabric's own tests ends as testdata/fabtests.txt says.
func TestFabtests(t *testing.T) {
	dir := os.Getenv(fabtestsEnv)
	if dir == "" {
		t.Skip("make fabtests builds libfabric's own tests, and runs them")
	}
	table, err := os.ReadFile("testdata/fabtests.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		line, _, _ = strings.Cut(line, "#")
		want, test, _ := strings.Cut(strings.TrimSpace(line), " ")
		if want == "" {
			continue
		}
		t.Run(test, func(t *testing.T) {
			w := newWorld(t)
			if got := w.fabtest(dir, strings.Fields(test)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// fabtest runs a test of libfabric, and returns pass, notrun or fail: on both nodes, or
// with ALONE on one, whose address takes the place of SERVER.
func (w *world) fabtest(dir string, test []string) string {
	w.t.Helper()
	server, client := w.net.A.IP4.String(), w.net.B.IP4.String()
	path := filepath.Join(dir, "bin", test[0])
	args := append([]string{"-p", "xdpfab"}, test[1:]...)
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
	c := w.listen(1, path, append(slices.Clone(args), client, server))
	got := []string{c.result(w.t), s.result(w.t)}
	for _, end := range []string{"notrun", "fail"} { // where one lacks something, the other one fails
		if slices.Contains(got, end) {
			return end
		}
	}
	return "pass"
}

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

// serves waits until a program has an endpoint, listens to the other one's TCP
// connection, or has ended.
func (w *world) serves(l *listened) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		guests := w.status(0).Guests
		if len(l.said) > 0 || len(guests) > 0 && guests[0].Endpoints > 0 || l.listens() {
			return
		}
	}
	w.t.Fatalf("%v has no endpoint after %v", l.Args, patience)
}

// listens reports whether a TCP socket listens in the program's network namespace.
func (l *listened) listens() bool {
	for _, name := range []string{"tcp", "tcp6"} {
		sockets, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", l.Process.Pid, name))
		if err == nil && strings.Contains(string(sockets), " 0A ") { // TCP_LISTEN
			return true
		}
	}
	return false
}

// result waits for the end of a test of libfabric, and says how it ended.
func (l *listened) result(t *testing.T) string {
	t.Helper()
	said := <-l.said
	err := l.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "pass"
	case errors.As(err, &exit) && slices.Contains(notRun, exit.ExitCode()):
		return "notrun"
	}
	t.Logf("%v: %v\n%s%s", l.Args, err, tail(said), tail(l.running.said.Bytes()))
	return "fail"
}
