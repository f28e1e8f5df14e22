// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/process"
)

// maxAnswer bounds what a client reads, bytes; a status of thousands of regions is far
// smaller.
const maxAnswer = 64 << 20

// silence bounds how long a daemon may take to answer, unless the client has a Patience
// of its own. It answers from memory; the rest is for machines that are overloaded. A
// client without gives up after halt, if the daemon's process is stopped. Variables for
// tests.
var (
	silence = 30 * time.Second
	halt    = 2 * time.Second
)

// patient returns how long a daemon may take for a verb. The first resident region has it
// load a program, which the kernel verifies, and NICs start anew for a program.
func patient(verb string) time.Duration {
	if verb == "create-region" || verb == "remove-region" {
		return 4 * silence
	}
	return silence
}

// ErrVersion means that the daemon is of a release that this client cannot talk to.
var ErrVersion = errors.New("daemon of another release")

// Client asks one daemon. Any number of goroutines may use it.
type Client struct {
	// Patience is how long the daemon may take for an answer; 0 for as long as a verb may
	// take on an overloaded machine: 30 s, or 2 minutes to create or remove a region, but
	// 2 s if the daemon is stopped.
	Patience time.Duration

	path string
	pid  int // of the daemon; 0 if it is not known
	http *http.Client
}

// Dial finds the daemon at a socket. The error wraps ErrNoDaemon when there is none,
// ErrSilent when it lets nobody in, or fs.ErrPermission when the caller may not connect.
func Dial(path string) (*Client, error) {
	// The connection only shows that a daemon is there. Requests have their own, so that
	// a client holds nothing open between them.
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, explain(path, err)
	}
	of, _ := ProgramAt(conn.(*net.UnixConn)) // it is for messages
	_ = conn.Close()
	var d net.Dialer
	return &Client{path: path, pid: of.PID, http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		},
	}}}, nil
}

// Elsewhere reports whether the daemon is known to be in another network namespace than
// this process, whether it answers or not.
func (c *Client) Elsewhere() bool { return elsewhere(c.pid) }

// Close frees the client.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Status returns the daemon's state.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.Call(ctx, "status", nil, &s)
}

// Call makes the daemon do what a verb says, and stores the outcome in the value that
// result points to. Nil means no arguments. A daemon that does not answer within the
// client's Patience is given up: the error wraps ErrSilent.
func (c *Client) Call(ctx context.Context, verb string, arguments, result any) error {
	req := Request{Version: ProtocolVersion, Verb: verb}
	if arguments != nil {
		var err error
		if req.Arguments, err = json.Marshal(arguments); err != nil {
			return c.failed(verb, err)
		}
	}
	body, err := json.Marshal(req)
	if err != nil {
		return c.failed(verb, err)
	}
	ctx, done := c.within(ctx, patient(verb))
	defer done()
	code, body, err := c.post(ctx, pathRequest, body)
	if err != nil {
		return err
	}
	var a Answer
	switch err := json.Unmarshal(body, &a); {
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return c.failed(verb, fmt.Errorf("%w: the daemon takes no requests: it is of an older release than "+
			"this client", ErrVersion))
	case err != nil:
		return c.failed(verb, fmt.Errorf("answer: %w; is it of another version?", err))
	case a.Version != ProtocolVersion:
		return c.failed(verb,
			fmt.Errorf("%w: the daemon speaks control protocol %d, this client %d; use the client of its release",
				ErrVersion, a.Version, ProtocolVersion))
	case a.Error != "":
		return a.Kind.mark(fmt.Errorf("daemon at %s: %s", c.path, a.Error))
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return c.failed(verb, fmt.Errorf("result: %w; is it of another version?", err))
	}
	return nil
}

// within returns a context that ends, with a SilentError as its cause, when the daemon
// has not answered for as long as the client has Patience; without, for so long, or when
// it is found to be stopped.
func (c *Client) within(ctx context.Context, otherwise time.Duration) (_ context.Context, done func()) {
	ctx, giveUp := context.WithCancelCause(ctx)
	limit := cmp.Or(c.Patience, otherwise)
	end := time.AfterFunc(limit, func() { giveUp(silent(c.path, c.pid, limit)) })
	early := time.AfterFunc(halt, func() {
		if e := silent(c.path, c.pid, halt); e.stopped && c.Patience == 0 {
			giveUp(e)
		}
	})
	return ctx, func() { end.Stop(); early.Stop(); giveUp(nil) }
}

// Alive returns an error that wraps ErrSilent if the daemon's process takes no requests
// within the client's Patience. It costs the pollers nothing.
func (c *Client) Alive(ctx context.Context) error {
	ctx, done := c.within(ctx, silence)
	defer done()
	_, _, err := c.post(ctx, "/", nil) // which the daemon does not have, and says so
	return err
}

// post sends a request and returns the answer.
func (c *Client) post(ctx context.Context, path string, request []byte) (code int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://xdpfabd"+path, bytes.NewReader(request))
	if err != nil {
		return 0, nil, explain(c.path, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, explain(c.path, because(ctx, err))
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return 0, nil, explain(c.path, because(ctx, err))
	}
	return resp.StatusCode, body, nil
}

func (c *Client) failed(verb string, err error) error {
	return fmt.Errorf("control socket %s: %s: %w", c.path, verb, err)
}

// because returns why a request ended: that the daemon is silent, if it was given up.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrSilent) {
		return cause
	}
	return err
}

// explain returns an error that says why a connection failed.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, ErrSilent):
		return err
	case errors.Is(err, syscall.EAGAIN): // others wait to be let in, as many as the kernel allows
		return silent(path, 0, 0)
	case isOther(path):
		return fmt.Errorf("%w: %s is no socket: give the path of the daemon's, which its log has as control=",
			ErrNoDaemon, path)
	case errors.Is(err, os.ErrNotExist) && removed(path) != nil:
		return removed(path)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %s: %w: start xdpfabd, or give its path", ErrNoDaemon, path, cause(err))
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: %s: %w: the daemon that made it has ended: start xdpfabd, or give its path", ErrNoDaemon,
			path, cause(err))
	case gone(err):
		return fmt.Errorf("%w: %s: the daemon hung up: it has ended, or this user has too many connections: try "+
			"again, or start xdpfabd", ErrNoDaemon, path)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("control socket %s: %w: run as a user or group that may write to it, or start the daemon "+
			"with --socket-group and a group of this user, which `id -Gn` lists, or with --socket-mode 0666", path,
			cause(err))
	}
	return fmt.Errorf("control socket %s: %w", path, cause(err))
}

// removed is an error about sockets whose paths match a pattern: a daemon listens, and
// somebody has removed its socket. Nil if there is none.
func removed(pattern string) error {
	for _, l := range process.ListenersAt(pattern) {
		if _, err := os.Lstat(l.Path); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		who := "a daemon"
		if l.PID != 0 {
			who = fmt.Sprintf("process %d (%s)", l.PID, process.Name(l.PID))
		}
		return errno.Refuse(ErrNoDaemon, "control socket %s has been removed, or is in another container's file "+
			"system; %s still listens there: restart that daemon, which makes the socket anew, or run this in its "+
			"container", l.Path, who)
	}
	return nil
}

// NoneIn is the error of a folder that has no control socket.
func NoneIn(folder string) error {
	if err := removed(filepath.Join(folder, "*.sock")); err != nil {
		return err
	}
	return fmt.Errorf("%w: none in %s; start xdpfabd, or name its socket with --control", ErrNoDaemon, folder)
}

// gone reports whether the daemon has ended a conversation, as its end does.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// cause returns an error of a connection without the request and the address, which mean
// nothing to a user.
func cause(err error) error {
	if of := new(url.Error); errors.As(err, &of) {
		err = of.Err
	}
	if of := new(net.OpError); errors.As(err, &of) {
		err = of.Err
	}
	if of := new(os.SyscallError); errors.As(err, &of) {
		err = of.Err
	}
	return err
}

// isOther reports whether there is something at a path which is no socket.
func isOther(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.Mode()&os.ModeSocket == 0
}
