// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// knock asks to attach, and returns the connection and the answer.
func knock(t *testing.T, path, header string) (*net.UnixConn, *http.Response) {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testnet.Patience))
	if _, err := io.WriteString(conn, "POST "+share.AttachPath+" HTTP/1.1\r\nHost: x\r\n"+header+"Content-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, r
}

const upgrade = "Connection: Upgrade\r\nUpgrade: xdpfab\r\n"

// place is a Place whose left, if there is one, is closed by Leave.
type place struct {
	host func(*net.UnixConn)
	left chan struct{}
}

func (p *place) Host(c *net.UnixConn) { p.host(c) }

func (p *place) Leave() {
	if p.left != nil {
		close(p.left)
	}
}

// echo serves a program by sending back what it says.
func echo(conn *net.UnixConn) { _, _ = io.Copy(conn, conn) }

// The program that attaches is this one, and its connection is the host's from then on.
func TestAttach(t *testing.T) {
	programs := make(chan Program, 1)
	path := startService(t, Service{Source: steady, Admit: func(_ context.Context, p Program) (Place, error) {
		programs <- p
		return &place{host: echo}, nil
	}})
	conn, r := knock(t, path, upgrade)
	if r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(r.Status)
	}
	p := <-programs
	groups, err := unix.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if p.PID != os.Getpid() || p.UID != uint32(os.Geteuid()) || p.GID != uint32(os.Getegid()) || len(p.Groups) != len(groups) {
		t.Errorf("program %+v, in the groups %v", p, groups)
	}
	for _, g := range groups {
		if !slices.Contains(p.Groups, uint32(g)) {
			t.Errorf("groups %v lack %d", p.Groups, g)
		}
	}
	b := []byte("still there?")
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != "still there?" {
		t.Errorf("%q, %v", b, err)
	}
}

// The time limits of HTTP end with it.
func TestGreetEndsLimits(t *testing.T) {
	path := startService(t, Service{Source: steady})
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := greet(conn); err != nil {
		t.Errorf("the limit holds on: %v", err)
	}
}

// A program whose connection cannot be handed over gives its place back.
func TestPlaceWithoutHost(t *testing.T) {
	left := make(chan struct{})
	path := startService(t, Service{Source: steady, Admit: func(context.Context, Program) (Place, error) {
		return &place{host: func(*net.UnixConn) { t.Error("hosted") }, left: left}, nil
	}})
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// What follows the request at once would be lost, so the server refuses it.
	if _, err := io.WriteString(conn, "POST "+share.AttachPath+" HTTP/1.1\r\nHost: x\r\n"+upgrade+"Content-Length: 0\r\n\r\nearly"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-left:
	case <-time.After(testnet.Patience):
		t.Error("the place is held")
	}
}

// A server that ends closes the connections of its programs, and waits for their hosts.
func TestAttachedEndWithTheServer(t *testing.T) {
	gone := make(chan struct{})
	var conn *net.UnixConn
	t.Run("serving", func(t *testing.T) {
		path := startService(t, Service{Source: steady, Admit: func(context.Context, Program) (Place, error) {
			return &place{host: echo, left: gone}, nil
		}})
		c, r := knock(t, path, upgrade)
		if r.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(r.Status)
		}
		conn = c
	})
	select {
	case <-gone:
	default:
		t.Error("the server returned before the host")
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}

func TestAttachRefused(t *testing.T) {
	refuse := func(context.Context, Program) (Place, error) { return nil, errors.New("rule 3 denies user 7") }
	for name, c := range map[string]struct {
		admit  Admit
		header string
		code   int
		want   string
	}{
		"by a rule":   {refuse, upgrade, 403, "rule 3 denies user 7"},
		"no guests":   {nil, upgrade, 404, "does not let"},
		"no upgrade":  {refuse, "", 426, "Upgrade: xdpfab"},
		"another one": {refuse, "Connection: Upgrade\r\nUpgrade: websocket\r\n", 426, "Upgrade: xdpfab"},
	} {
		_, r := knock(t, startService(t, Service{Source: steady, Admit: c.admit}), c.header)
		b, err := io.ReadAll(r.Body)
		if r.StatusCode != c.code || err != nil || !strings.Contains(string(b), c.want) {
			t.Errorf("%s: %s, %q, %v; want %d, %q", name, r.Status, b, err, c.code, c.want)
		}
	}
}

// Mode and group of the socket are those that were asked for.
func TestAccess(t *testing.T) {
	testnet.Require(t)
	group, path := 65534, filepath.Join(t.TempDir(), "x.sock")
	l, err := Listen(t.Context(), path, Access{Mode: 0o600, Group: &group})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Mode&0o777 != 0o600 || st.Gid != 65534 || int(st.Uid) != os.Geteuid() {
		t.Errorf("mode %o, group %d, %v", st.Mode, st.Gid, err)
	}
}
