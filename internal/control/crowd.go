// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"math"
	"net"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// mostOpen is how many connections there are at a time, of all users: a quarter of the
// file descriptors that the process may have, so that one of root's is always accepted.
func mostOpen() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil || r.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return max(int(r.Cur)/4, 1)
}

// mostConns is how many connections a user has at a time, those of attached programs
// apart, which rules limit. It leaves the other users the file descriptors that they
// need, and is more than the processes of a job that all attach at once.
const mostConns = 1024

// crowd knows the connections of each user that speak HTTP. Beyond the most that a user
// may have, the oldest gives way to the newest: so a program of the user that leaves
// connections open does not keep another one out, and no other user notices. Beyond the
// most that all users may have, the oldest of the user with the most gives way.
type crowd struct {
	most, open int

	mu   sync.Mutex
	of   map[uint32][]net.Conn // by user, oldest first
	user map[net.Conn]uint32
}

// newCrowd returns a crowd in which each user has at most the given number.
func newCrowd(most int) *crowd {
	return &crowd{most: most, open: mostOpen(), of: map[uint32][]net.Conn{}, user: map[net.Conn]uint32{}}
}

// turn is http.Server.ConnState.
func (c *crowd) turn(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.enter(conn)
	case http.StateHijacked, http.StateClosed:
		c.mu.Lock()
		c.remove(conn)
		c.mu.Unlock()
	}
}

// enter counts a connection. One whose program the kernel does not tell is closed: only
// Unix sockets are served.
func (c *crowd) enter(conn net.Conn) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return
	}
	p, err := ProgramAt(socket)
	if err != nil {
		_ = conn.Close()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if own := c.of[p.UID]; len(own) >= c.most {
		c.drop(own[0])
	} else if len(c.user) >= c.open {
		var largest []net.Conn
		for _, conns := range c.of {
			if len(conns) > len(largest) {
				largest = conns
			}
		}
		c.drop(largest[0])
	}
	c.of[p.UID] = append(c.of[p.UID], conn)
	c.user[conn] = p.UID
}

// drop closes a connection. The caller holds mu.
func (c *crowd) drop(conn net.Conn) {
	_ = conn.Close()
	c.remove(conn)
}

// remove takes out a connection that ended, or has become an attached program's. The
// caller holds mu.
func (c *crowd) remove(conn net.Conn) {
	user, counted := c.user[conn]
	if !counted {
		return
	}
	delete(c.user, conn)
	own := slices.DeleteFunc(c.of[user], func(other net.Conn) bool { return other == conn })
	if c.of[user] = own; len(own) == 0 {
		delete(c.of, user)
	}
}
