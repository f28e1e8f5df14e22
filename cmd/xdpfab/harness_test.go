// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// peerAddr is the far end of every pipe.
const peerAddr = "02:00:00:00:00:0b"

// farNode is a peer at the far end of a pipe: each open makes a new pipe to it, and
// its memory stays.
type farNode struct {
	region *mr.Region // "r", since the latest open
	t      *testing.T
	mem    *mr.Memory
	attr   xdpfab.DomainAttr                   // of the last open
	begun  func(client, server *xdpfab.Domain) // if it is not nil, is called in each open
	uses   *xdpfab.Domain                      // if it is not nil, open returns it in place of a pipe's
	env    func(string) string
	files  []string // of the configuration

	mu     sync.Mutex
	opened []*xdpfab.Domain
}

// newNode serves "r", 64 KiB under key 0x51, and "ro", which is read-only.
func newNode(t *testing.T) *farNode {
	m, err := mr.Alloc(64<<10, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := &farNode{t: t, mem: m}
	t.Cleanup(func() {
		for _, d := range n.opened {
			if err := d.CloseAll(); err != nil {
				t.Error(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// open is the app's opener.
func (n *farNode) open(_ context.Context, ifname string, attr xdpfab.DomainAttr) (*xdpfab.Domain, error) {
	if n.uses != nil {
		return n.uses, nil
	}
	if ifname != "pipe0" {
		return nil, fmt.Errorf("xdpfab: port: %q: no such interface", ifname)
	}
	client, server, err := xdpfab.Pipe(attr, xdpfab.DomainAttr{})
	if err != nil {
		return nil, err
	}
	key := uint64(0x51)
	r, err1 := server.Register(n.mem, mr.Options{Name: "r", Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
	_, err2 := server.Register(n.mem, mr.Options{Name: "ro", Access: mr.RemoteRead})
	ep, err3 := server.NewEndpoint(xdpfab.EndpointAttr{})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attr, n.region = attr, r
	n.opened = append(n.opened, server)
	err = ep.Enable()
	if n.begun != nil {
		n.begun(client, server)
	}
	return client, err
}

// ran is the result of a command line.
type ran struct {
	code     int
	out, err string
}

// run executes a command line against the node. It may be one of thousands of operations,
// which take minutes on a busy machine.
func (n *farNode) run(in string, args ...string) ran {
	ctx, cancel := context.WithTimeout(context.Background(), 10*testnet.Patience)
	defer cancel()
	return n.runContext(ctx, in, args...)
}

// interrupt runs a command line and interrupts it once it is at work and meanwhile has
// returned. It is at work when the node has executed more requests than the preparation
// takes.
func (n *farNode) interrupt(line string, meanwhile func()) ran {
	n.t.Helper()
	const underWay = 10 // requests
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done, opened := make(chan ran, 1), len(n.opened)
	go func() { done <- n.runContext(ctx, "", n.line(line)...) }()
	testnet.Eventually(n.t, line+" is at work", func() bool { return len(done) > 0 || n.executed(opened) > underWay })
	meanwhile()
	cancel()
	return <-done
}

// executed returns how many requests have run since the open of this number.
func (n *farNode) executed(open int) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.opened) <= open {
		return 0
	}
	all, err := n.opened[open].Stats()
	if err != nil {
		n.t.Error(err)
	}
	return all["requests_executed"]
}

// runFull runs a command line whose stdout is full.
func (n *farNode) runFull(in string, args ...string) ran {
	n.t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	defer full.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*testnet.Patience)
	defer cancel()
	var errs bytes.Buffer
	a := &app{open: n.open, in: strings.NewReader(in), out: full, err: &errs, env: n.env, files: n.files}
	code := a.run(ctx, args)
	return ran{code, "", strings.ReplaceAll(errs.String(), "\n  ", " ")}
}

// runUnread runs a command line whose stdout is a pipe that nobody reads any more.
func (n *farNode) runUnread(in string, args ...string) ran {
	n.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		n.t.Fatal(err)
	}
	defer w.Close()
	_ = r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*testnet.Patience)
	defer cancel()
	var errs bytes.Buffer
	a := &app{open: n.open, in: strings.NewReader(in), out: w, err: &errs, env: n.env, files: n.files}
	return ran{a.run(ctx, args), "", strings.ReplaceAll(errs.String(), "\n  ", " ")}
}

func (n *farNode) runContext(ctx context.Context, in string, args ...string) ran {
	var out, errs bytes.Buffer
	a := &app{open: n.open, in: strings.NewReader(in), out: &out, err: &errs, env: n.env, files: n.files}
	code := a.run(ctx, args)
	return ran{code, out.String(), strings.ReplaceAll(errs.String(), "\n  ", " ")} // see tell.Fold
}

// line splits a command line at spaces and adds the flags that lead to the node, which
// is alive however long the machine keeps it from answering.
func (n *farNode) line(s string) []string {
	s = strings.ReplaceAll(s, "PEER", peerAddr)
	if !strings.Contains(s, "--timeout") {
		s += " --timeout " + testnet.Patience.String()
	}
	return append(strings.Fields(s), "-i", "pipe0")
}

// mustRun wants success and decodes the JSON that the command prints.
func mustRun[T any](n *farNode, s string) (v T) {
	n.t.Helper()
	r := n.run("", append(n.line(s), "--json")...)
	if r.code != 0 || r.err != "" {
		n.t.Fatalf("%s: exit code %d, %s", s, r.code, r.err)
	}
	d := json.NewDecoder(strings.NewReader(r.out))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		n.t.Fatalf("%s: %v in %s", s, err, r.out)
	}
	return v
}

// checkRefusal wants an exit code, an error of one line that contains a text, and no
// output. The error may be JSON.
func checkRefusal(t *testing.T, name string, r ran, code int, say string) {
	t.Helper()
	if e := new(errorReport); json.Unmarshal([]byte(r.err), e) == nil {
		r.err = "xdpfab: " + e.Error + "\n"
	}
	if notice, rest, is := strings.Cut(r.err, "; Ctrl-C ends\n"); is && strings.HasPrefix(notice, "receiving at ") {
		r.err = rest // receive had begun to wait
	}
	if r.code != code || !strings.HasPrefix(r.err, "xdpfab: ") || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, say) || r.out != "" {
		t.Errorf("%s: exit code %d, error %q, output %q; want code %d, one line saying %q", name, r.code, r.err, r.out, code, say)
	}
}
