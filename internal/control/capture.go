// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/xdpfab/xdpfab/internal/capture"
)

// startCapture is what a daemon answers to the options of a capture.
type startCapture struct {
	capture.Start
	Error string `json:"error,omitempty"` // why there is none
}

// captures lets users ask for packets. end ends their conversations.
func (s *Service) captures(mux *http.ServeMux) (end func()) {
	all := &attachments{admit: s.Capture}
	mux.Handle("POST "+pathCapture, all)
	return all.end
}

// ServeCapture serves one capture: begin gets the options that the client sends, and
// write writes the stream of the capture until stop is closed, which is when the client
// wants no more or has gone.
func ServeCapture(conn *net.UnixConn, begin func(capture.Options) (start capture.Start, write func(w io.Writer,
	stop <-chan struct{}) error, err error)) error {
	var o capture.Options
	err := errors.Join(conn.SetReadDeadline(time.Now().Add(patience)), Hear(conn, &o),
		conn.SetReadDeadline(time.Time{}))
	if err != nil {
		return err
	}
	start, write, err := begin(o)
	if err != nil {
		return errors.Join(err, Tell(conn, startCapture{Error: err.Error()}))
	}
	stop := make(chan struct{})
	told := Tell(conn, startCapture{Start: start})
	go func() { // until the connection is closed: by the caller at the latest
		defer close(stop)
		_, _ = conn.Read(make([]byte, 1))
	}()
	return errors.Join(told, write(impatient{conn}, stop)) // write has to undo what begin did
}

// impatient is a connection whose client has to take what is written within some time.
type impatient struct{ *net.UnixConn }

// takeWithin is that time: of a client that is stopped, or does not read.
const takeWithin = 10 * time.Second

func (i impatient) Write(b []byte) (int, error) {
	if err := i.SetWriteDeadline(time.Now().Add(takeWithin)); err != nil {
		return 0, err
	}
	return i.UnixConn.Write(b)
}

// ErrCaptureEnded means that a capture has ended without its totals. It matches
// ErrNoDaemon.
var ErrCaptureEnded error = marked{
	errors.New("the daemon has ended, or another one took its place: capture again when one serves"), ErrNoDaemon}

// Capture has the daemon send packets, in a stream for capture.NewReader. CloseWrite of
// the connection ends the capture: then what is under way follows, and the totals.
func (c *Client) Capture(ctx context.Context, o capture.Options) (conn *net.UnixConn, start capture.Start, err error) {
	var d net.Dialer
	x, err := d.DialContext(ctx, "unix", c.path)
	if err != nil {
		return nil, start, explain(c.path, err)
	}
	conn = x.(*net.UnixConn)
	var answer startCapture
	limit := cmp.Or(c.Patience, silence)
	err = errors.Join(conn.SetDeadline(time.Now().Add(limit)), leaveHTTP(ctx, conn, pathCapture))
	if err == nil {
		err = errors.Join(Tell(conn, o), Hear(conn, &answer), conn.SetDeadline(time.Time{}))
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = silent(c.path, c.pid, limit)
	case errors.Is(err, errOlder):
		err = errors.New("the daemon is of an older release, which captures nothing: restart it")
	case gone(err):
		err = ErrCaptureEnded
	case err == nil && answer.Error != "":
		err = errors.New(answer.Error)
	case err == nil && o.Resident && !answer.Resident:
		err = errors.New("the daemon is of an older release, which captures nothing that the XDP program answers: " +
			"restart it, or do without --resident")
	}
	if err != nil {
		return nil, start, errors.Join(fmt.Errorf("control socket %s: capture: %w", c.path, err), conn.Close())
	}
	return conn, answer.Start, nil
}
