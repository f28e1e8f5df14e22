// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab/directory"
)

// server is an etcd of the test's own, on a port of the loopback interface.
type server struct {
	t      *testing.T
	dir    string
	client string // host and port
	peer   string
	cmd    *exec.Cmd
}

// newServer starts the etcd that XDPFAB_ETCD names, which make test-directory sets.
func newServer(t *testing.T) *server {
	if os.Getenv("XDPFAB_ETCD") == "" {
		t.Skip("takes etcd: make test-directory")
	}
	s := &server{t: t, dir: t.TempDir(), client: freePort(t), peer: freePort(t)}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *server) start() {
	s.cmd = exec.Command(os.Getenv("XDPFAB_ETCD"), "--data-dir", s.dir, "--name", "test", "--log-level", "error",
		"--listen-client-urls", "http://"+s.client, "--advertise-client-urls", "http://"+s.client,
		"--listen-peer-urls", "http://"+s.peer, "--initial-advertise-peer-urls", "http://"+s.peer,
		"--initial-cluster", "test=http://"+s.peer)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// kill ends the server without a farewell.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) url() string { return "etcd://" + s.client + "/test" }

// source opens the directory, whose log the test reads.
func (s *server) source() (*Source, *logged) {
	l := new(logged)
	src, err := Open(s.url(), slog.New(slog.NewTextHandler(l, nil)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = src.Close() })
	return src, l
}

// directory follows the source.
func (s *server) directory() *directory.Directory {
	src, _ := s.source()
	ctx, end := context.WithTimeout(s.t.Context(), time.Minute)
	defer end()
	d, err := directory.Open(ctx, src)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(d.Close)
	return d
}

// logged is a log that another goroutine may read.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// announcement is one process's announcement of a node.
type announcement struct {
	updates chan directory.Node
	end     context.CancelCauseFunc
	ended   chan struct{}
}

func announce(t *testing.T, src *Source, n directory.Node) *announcement {
	ctx, end := context.WithCancelCause(t.Context())
	a := &announcement{updates: make(chan directory.Node), end: end, ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		_ = src.Announce(ctx, a.updates)
	}()
	a.updates <- n
	t.Cleanup(func() { a.stop(nil) })
	return a
}

func (a *announcement) stop(cause error) {
	a.end(cause)
	<-a.ended
}

// until waits for a state of the directory; hangs are for the limit of go test.
func until(d *directory.Directory, ok func() bool) {
	for {
		changed := d.Changed()
		if ok() {
			return
		}
		<-changed
	}
}

func node(name, addr string, regions ...string) directory.Node {
	return directory.Node{Name: name, Addrs: []string{addr}, Regions: regions}
}

func has(d *directory.Directory, n directory.Node) func() bool {
	return func() bool {
		there, err := d.Node(n.Name)
		return err == nil && there.Equal(n)
	}
}

func lacks(d *directory.Directory, name string) func() bool {
	return func() bool { _, err := d.Node(name); return err != nil }
}

func TestAnnouncementsAreFollowed(t *testing.T) {
	s := newServer(t)
	src, _ := s.source()
	d := s.directory()
	a := announce(t, src, node("node7", "10.0.0.7", "counters"))
	until(d, has(d, node("node7", "10.0.0.7", "counters")))
	a.updates <- node("node7", "10.0.0.7", "counters", "scores")
	until(d, has(d, node("node7", "10.0.0.7", "counters", "scores")))
	if !src.Announced() {
		t.Error("the entry is there, and Announced says that it is not")
	}
	if n, err := d.Home("scores"); err != nil || n.Name != "node7" {
		t.Errorf("home of scores: %v, %v", n, err)
	}
	a.stop(nil)
	until(d, lacks(d, "node7"))
	if src.Announced() {
		t.Error("the entry has gone, and Announced says that it is there")
	}
}

// A process that is replaced leaves its entry to the next one; the end of its lease does
// not remove it.
func TestReplacedEntryStays(t *testing.T) {
	s := newServer(t)
	first, _ := s.source()
	second, _ := s.source()
	d := s.directory()
	a := announce(t, first, node("node7", "10.0.0.7"))
	until(d, has(d, node("node7", "10.0.0.7")))
	a.stop(directory.ErrReplaced)
	if lacks(d, "node7")() {
		t.Error("the entry went with the process that was replaced")
	}
	announce(t, second, node("node7", "10.0.0.7", "new"))
	until(d, has(d, node("node7", "10.0.0.7", "new")))
	time.Sleep(TTL + 2*time.Second) // the first lease ends
	if !has(d, node("node7", "10.0.0.7", "new"))() {
		t.Error("the entry went with the lease of the process that was replaced")
	}
}

// A process that dies is forgotten when its lease ends.
func TestDeadNodeIsForgotten(t *testing.T) {
	s := newServer(t)
	src, _ := s.source()
	d := s.directory()
	a := announce(t, src, node("node7", "10.0.0.7"))
	until(d, has(d, node("node7", "10.0.0.7")))
	a.stop(directory.ErrReplaced) // as kill -9: nothing is revoked, and nobody takes over
	until(d, lacks(d, "node7"))
}

// Of two nodes with one name the first one stays, and the second is told, and comes in
// when the first one goes.
func TestNameBelongsToOne(t *testing.T) {
	s := newServer(t)
	first, _ := s.source()
	second, log := s.source()
	d := s.directory()
	a := announce(t, first, node("node7", "10.0.0.7"))
	until(d, has(d, node("node7", "10.0.0.7")))
	announce(t, second, node("node7", "10.0.0.8"))
	for !strings.Contains(log.String(), "another node has announced this name") {
		time.Sleep(10 * time.Millisecond)
	}
	if !has(d, node("node7", "10.0.0.7"))() {
		t.Error("the second node took the name of the first")
	}
	a.stop(nil)
	until(d, has(d, node("node7", "10.0.0.8")))
}

// The server dies and comes back, three times: entries stay, announcements come again,
// and changes are seen.
func TestServerDies(t *testing.T) {
	s := newServer(t)
	src, log := s.source()
	d := s.directory()
	a := announce(t, src, node("node7", "10.0.0.7"))
	until(d, has(d, node("node7", "10.0.0.7")))
	for i := range 3 {
		s.kill()
		until(d, func() bool { return d.Stale() != nil })
		if !strings.Contains(d.Stale().Error(), "etcd") {
			t.Errorf("%v: want it to name etcd", d.Stale())
		}
		if lacks(d, "node7")() {
			t.Error("the entry went with the server")
		}
		s.start()
		until(d, func() bool { return d.Stale() == nil })
		now := node("node7", "10.0.0.7", fmt.Sprint("region", i))
		a.updates <- now
		until(d, has(d, now))
	}
	if text := log.String(); !strings.Contains(text, "this node is in the directory") {
		t.Errorf("%s: want the log to tell of the announcement", text)
	}
}

// The server is away for longer than a lease: whoever lives is back before that ends,
// which etcd counts from its return. By the rule of package grpc the process would try
// again only after ever longer times, after 30 s every 16 s.
func TestLongAbsenceForgetsNobody(t *testing.T) {
	s := newServer(t)
	src, _ := s.source()
	d := s.directory()
	announce(t, src, node("node7", "10.0.0.7"))
	until(d, has(d, node("node7", "10.0.0.7")))
	for range 2 { // what the rule does depends on the moment
		s.kill()
		time.Sleep(30 * time.Second)
		s.start()
		fresh := s.directory()
		for end := time.After(TTL + 5*time.Second); end != nil; {
			changed := fresh.Changed()
			if lacks(fresh, "node7")() {
				t.Fatal("the entry of a process that lives has gone")
			}
			select {
			case <-changed:
			case <-end:
				end = nil
			}
		}
	}
}

// The server comes back at once and knows nothing: its revisions begin anew, and a watch
// from the revision that was reached before would wait for ever.
func TestServerComesBackEmpty(t *testing.T) {
	s := newServer(t)
	src, _ := s.source()
	d := s.directory()
	a := announce(t, src, node("node7", "10.0.0.7"))
	for i := range 9 {
		a.updates <- node("node7", "10.0.0.7", fmt.Sprint("region", i))
	}
	if _, err := src.client.Put(t.Context(), src.prefix+"node8", "10.0.0.8"); err != nil { // which nobody announces again
		t.Fatal(err)
	}
	until(d, has(d, node("node8", "10.0.0.8")))
	s.kill()
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	s.start()
	until(d, lacks(d, "node8"))
	now := node("node7", "10.0.0.7", "new")
	a.updates <- now
	until(d, has(d, now))
}

// An entry that cannot be understood is left out, and the others stand.
func TestGarbageInEtcd(t *testing.T) {
	s := newServer(t)
	src, _ := s.source()
	for key, value := range map[string]string{"good": "10.0.0.1 a b", "bad": "", "-odd": "10.0.0.2",
		"worse": "10.0.0.3,\x00 x"} {
		if _, err := src.client.Put(t.Context(), src.prefix+key, value); err != nil {
			t.Fatal(err)
		}
	}
	d := s.directory()
	if list := d.Nodes(); len(list) != 1 || list[0].Name != "good" {
		t.Errorf("%v: want the good one alone", list)
	}
}

func TestURLs(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	for _, c := range []struct{ url, want string }{
		{"http://10.0.0.1:2379", "want etcd, or etcds"},
		{"etcd:///xdpfab", "no host"},
		{"etcd://10.0.0.1", "want HOST:PORT"},
		{"etcd://me:secret@10.0.0.1:2379", "where others can read it"},
		{"etcd://me@10.0.0.1:2379", "want it in XDPFAB_ETCD_PASSWORD"},
		{"etcd://10.0.0.1:2379?ca=x", "want etcds"},
		{"etcds://10.0.0.1:2379?cipher=x", `unknown option "cipher"`},
		{"etcds://10.0.0.1:2379?ca=/nonexistent", "ca: open /nonexistent"},
		{"etcds://10.0.0.1:2379?cert=x", "want both"},
	} {
		if s, err := Open(c.url, nil); err == nil {
			_ = s.Close()
			t.Errorf("%s: no error, want %q", c.url, c.want)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.url, err, c.want)
		}
	}
	got, err := parse("etcd://10.0.0.1:2379,10.0.0.2:2379/prod/fabric/")
	if err != nil || got.prefix != "/prod/fabric/nodes/" || len(got.config.Endpoints) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}
