// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Program is the program at the other end of a connection, as it was when it connected.
// Its user and groups are those that the kernel shows to this process: those of a
// program in a user namespace are the ones that they are mapped to outside.
type Program struct {
	PID    int // 0 if it is in a process namespace that this one does not see
	UID    uint32
	GID    uint32
	Groups []uint32 // in addition to GID
}

// Admit decides whether a program may attach: it returns the program's place, or the
// error that says why it may not. The context ends with the program's request.
type Admit func(context.Context, Program) (Place, error)

// Place is what a program has that may attach.
type Place interface {
	// Host serves the program until it has gone, or until the connection is closed.
	Host(*net.UnixConn)
	// Leave gives the place back. It is called once, after Host if that was called.
	Leave()
}

// attachments are the connections that left HTTP.
type attachments struct {
	admit Admit
	hosts sync.WaitGroup

	mu    sync.Mutex
	conns map[*net.UnixConn]struct{}
	ended bool
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// withConn is http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ServeHTTP answers POST of share.AttachPath: the connection is handed over to the host
// after the answer.
func (a *attachments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, ok := r.Context().Value(connKey{}).(*net.UnixConn)
	if !ok || a.admit == nil {
		http.Error(w, "this daemon does not let other programs attach", http.StatusNotFound)
		return
	}
	if r.Header.Get("Upgrade") != "xdpfab" {
		http.Error(w, "want the header Upgrade: xdpfab", http.StatusUpgradeRequired)
		return
	}
	p, err := ProgramAt(conn)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	place, err := a.admit(r.Context(), p)
	if err != nil {
		w.Header().Set(kindHeader, string(kindOf(err)))
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	_, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		place.Leave()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// What comes behind the request before the answer has left may have had file
	// descriptors with it, which are lost.
	if buf.Reader.Buffered() > 0 || !a.enter(conn, place) {
		_ = conn.Close()
		place.Leave()
	}
}

// greet ends HTTP on a connection. The time limits that net/http has set end with it.
func greet(conn *net.UnixConn) error {
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	_, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: xdpfab\r\n\r\n")
	return err
}

// enter has a connection served, unless the daemon ends.
func (a *attachments) enter(conn *net.UnixConn, place Place) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return false
	}
	if a.conns == nil {
		a.conns = map[*net.UnixConn]struct{}{}
	}
	a.conns[conn] = struct{}{}
	a.hosts.Go(func() {
		defer place.Leave()
		if greet(conn) == nil { // not before: a program that has the answer is waited for
			place.Host(conn)
		}
		_ = conn.Close()
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.conns, conn)
	})
	return true
}

// end closes the connections, lets in no more, and waits until their hosts have returned.
func (a *attachments) end() {
	a.mu.Lock()
	a.ended = true
	for c := range a.conns {
		_ = c.Close()
	}
	a.mu.Unlock()
	a.hosts.Wait()
}

// Caller returns the program that made the request whose context a verb has.
func Caller(ctx context.Context) (Program, error) {
	conn, ok := ctx.Value(connKey{}).(*net.UnixConn)
	if !ok {
		return Program{}, errors.New("not a request by a Unix socket")
	}
	return ProgramAt(conn)
}

// ProgramAt asks the kernel which program has connected.
func ProgramAt(conn *net.UnixConn) (p Program, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return p, err
	}
	inner := raw.Control(func(fd uintptr) {
		var c *unix.Ucred
		if c, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil {
			return
		}
		p = Program{PID: int(c.Pid), UID: c.Uid, GID: c.Gid}
		p.Groups, err = peerGroups(int(fd))
	})
	return p, errors.Join(err, inner)
}
