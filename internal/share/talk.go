// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Talk is the conversation of guest and host outside the rings: JSON texts, each behind
// its length in four bytes, and file descriptors. One goroutine at a time receives; any
// number may send.
type Talk struct {
	conn *net.UnixConn
	out  sync.Mutex
	fds  []int // that have come and belong to no text yet; the receiver's

	patience time.Duration // for the other side to take a text; 0 is forever

	paused atomic.Bool

	begun bool // a part of a text has come; the receiver's
	late  bool // it was waited for after Pause; the receiver's
}

// NewTalk begins a conversation over a stream socket, which is the talk's from then on.
func NewTalk(c *net.UnixConn) *Talk { return &Talk{conn: c} }

// Hurry makes Send fail if the other side does not take a text for so long. Before the
// talk is used.
func (t *Talk) Hurry(patience time.Duration) { t.patience = patience }

// Limits of what one side takes from the other.
const (
	maxText = 64 << 10
	maxFDs  = 4
)

// Call is a request of the guest.
type Call struct {
	ID        uint64          `json:"id"`
	Verb      string          `json:"verb"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Reply is the outcome of the call of the same ID.
type Reply struct {
	ID     uint64          `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	Errno  uint16          `json:"errno,omitempty"` // of an error: its code of fi_errno(3)
	Kinds  []string        `json:"kinds,omitempty"` // which of the errors that programs look for; see xdpfab
}

// Send sends a text and file descriptors, which stay the caller's.
func (t *Talk) Send(v any, fds ...int) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > maxText {
		return fmt.Errorf("text of %d bytes: want at most %d", len(text), maxText)
	}
	b := append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	t.out.Lock()
	defer t.out.Unlock()
	if t.patience > 0 {
		_ = t.conn.SetWriteDeadline(time.Now().Add(t.patience))
	}
	n, _, err := t.conn.WriteMsgUnix(b, rights, nil)
	if err == nil && n < len(b) {
		_, err = t.conn.Write(b[n:])
	}
	return err
}

// Receive waits for a text and stores it in the value that v points to. The file
// descriptors that came with it are the caller's. io.EOF means that the other side has
// gone.
func (t *Talk) Receive(v any) (fds []int, err error) {
	if t.late || t.paused.Load() {
		return nil, ErrPaused
	}
	var head [4]byte
	if err := t.read(head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxText {
		return nil, fmt.Errorf("text of %d bytes: want at most %d", n, maxText)
	}
	text := make([]byte, n)
	if err := t.read(text); err != nil {
		return nil, err
	}
	fds, t.fds = t.fds, nil
	t.begun = false
	if err := json.Unmarshal(text, v); err != nil {
		CloseAll(fds)
		return nil, fmt.Errorf("a text that is no JSON of ours: %w", err)
	}
	return fds, nil
}

// read fills b, and keeps the file descriptors that come along.
func (t *Talk) read(b []byte) error {
	for len(b) > 0 {
		var space [256]byte
		n, oob, flags, _, err := t.conn.ReadMsgUnix(b, space[:])
		if e := t.keep(space[:oob]); err == nil {
			err = e
		}
		t.begun = t.begun || n > 0
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && t.paused.Load() && t.begun && !t.late:
			t.late = true
			err = t.conn.SetReadDeadline(time.Now().Add(restOfText))
			if err != nil {
				return err
			}
			continue
		case errors.Is(err, os.ErrDeadlineExceeded) && t.paused.Load() && !t.begun:
			return ErrPaused
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		case flags&unix.MSG_CTRUNC != 0:
			return errors.New("more file descriptors than there is room for")
		}
		b = b[n:]
	}
	return nil
}

// keep takes the file descriptors out of control messages.
func (t *Talk) keep(oob []byte) error {
	if len(oob) == 0 {
		return nil
	}
	fds, err := filesIn(oob)
	if t.fds = append(t.fds, fds...); err == nil && len(t.fds) > maxFDs {
		return fmt.Errorf("%d file descriptors: want at most %d with one text", len(t.fds), maxFDs)
	}
	return err
}

// filesIn returns the file descriptors in control messages.
func filesIn(oob []byte) (all []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // something else
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
		}
		all = append(all, fds...)
	}
	return all, nil
}

// ErrPaused is the error of Receive after Pause.
var ErrPaused = errors.New("the conversation has been paused")

// restOfText bounds the wait for the rest of a text that came in part.
const restOfText = 2 * time.Second

// Pause makes Receive return ErrPaused, between two texts.
func (t *Talk) Pause() {
	t.paused.Store(true)
	_ = t.conn.SetReadDeadline(time.Unix(1, 0))
}

// FD returns a file descriptor of the connection, which is the caller's.
func (t *Talk) FD() (fd int, err error) { return dup(t.conn) }

// Control calls f with the file descriptor of the connection, which stays the talk's. The
// error reports that the conversation has ended.
func (t *Talk) Control(f func(fd int)) error {
	raw, err := t.conn.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}

// dup returns another file descriptor of a connection.
func dup(c syscall.Conn) (fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	inner := raw.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(err, inner)
}

// Until sets the time after which sending and receiving fail; the zero time is never.
func (t *Talk) Until(end time.Time) {
	_ = t.conn.SetDeadline(end)
	if t.paused.Load() {
		_ = t.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// End ends the conversation: the other side and the own receiver learn of it.
func (t *Talk) End() { _ = t.conn.Close() }

// Close frees what the conversation has, after the last Receive has returned.
func (t *Talk) Close() error {
	CloseAside(t.fds)
	t.fds = nil
	return t.conn.Close()
}

// CloseAll closes file descriptors that are not wanted.
func CloseAll(fds []int) {
	for _, fd := range fds {
		_ = closeFD(fd)
	}
}

// Peer returns user, group and process at the other end, as they were when it connected.
func (t *Talk) Peer() (cred unix.Ucred, err error) {
	raw, err := t.conn.SyscallConn()
	if err != nil {
		return cred, err
	}
	inner := raw.Control(func(fd uintptr) {
		var c *unix.Ucred
		if c, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			cred = *c
		}
	})
	return cred, errors.Join(err, inner)
}
