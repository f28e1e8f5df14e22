// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peerAddr is the far end of every pipe.
const peerAddr = "02:00:00:00:00:0b"

// farNode is a peer at the far end of a pipe: each open makes a new pipe to it, and
// its memory stays.
type farNode struct {
	t    *testing.T
	mem  *mr.Memory
	attr xdpfab.DomainAttr // of the last open

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
			if err := d.Close(); err != nil {
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
	if ifname != "pipe0" {
		return nil, fmt.Errorf("xdpfab: port: %q: no such interface", ifname)
	}
	client, server, err := xdpfab.Pipe(attr, xdpfab.DomainAttr{})
	if err != nil {
		return nil, err
	}
	key := uint64(0x51)
	_, err1 := server.Register(n.mem, mr.Options{Name: "r", Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
	_, err2 := server.Register(n.mem, mr.Options{Name: "ro", Access: mr.RemoteRead})
	ep, err3 := server.NewEndpoint(xdpfab.EndpointAttr{})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attr = attr
	n.opened = append(n.opened, server)
	return client, ep.Enable()
}

// result of a command line.
type ran struct {
	code     int
	out, err string
}

// run executes a command line against the node.
func (n *farNode) run(in string, args ...string) ran {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return n.runContext(ctx, in, args...)
}

func (n *farNode) runContext(ctx context.Context, in string, args ...string) ran {
	var out, errs bytes.Buffer
	a := &app{open: n.open, in: strings.NewReader(in), out: &out, err: &errs}
	code := a.run(ctx, args)
	return ran{code, out.String(), errs.String()}
}

// line splits a command line at spaces and adds the flags that lead to the node.
func (n *farNode) line(s string) []string {
	s = strings.ReplaceAll(s, "PEER", peerAddr)
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

// checkRefusal wants an exit code, a one-line error that says something, and no
// output.
func checkRefusal(t *testing.T, name string, r ran, code int, say string) {
	t.Helper()
	if r.code != code || !strings.HasPrefix(r.err, "xdpfab: ") || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, say) || r.out != "" {
		t.Errorf("%s: exit code %d, error %q, output %q; want code %d, one line saying %q", name, r.code, r.err, r.out, code, say)
	}
}
