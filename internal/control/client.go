// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// maxAnswer bounds what a client reads, bytes; a status of thousands of regions
// is far smaller.
const maxAnswer = 64 << 20

// silence bounds how long a daemon may take to answer. It answers from memory; the rest
// is for machines that are overloaded. A variable for tests.
var silence = 30 * time.Second

// patient returns how long a daemon may take for a verb. The first resident region has it
// load a program, which the kernel verifies, and NICs start anew for a program.
func patient(verb string) time.Duration {
	if verb == "create-region" || verb == "remove-region" {
		return 4 * silence
	}
	return silence
}

// Client asks one daemon. Any number of goroutines may use it.
type Client struct {
	path string
	http *http.Client
}

// Dial finds the daemon at a socket. The error wraps ErrNoDaemon when there is
// none, or fs.ErrPermission when the caller may not connect.
func Dial(path string) (*Client, error) {
	// The connection only shows that a daemon is there. Requests have their own,
	// so that a client holds nothing open between them.
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, explain(path, err)
	}
	_ = conn.Close()
	var d net.Dialer
	return &Client{path: path, http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		},
	}}}, nil
}

// Close frees the client.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Status returns the daemon's state.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.Call(ctx, "status", nil, &s)
}

// Call makes the daemon do what a verb says, and stores the outcome in the
// value that result points to. Nil means no arguments. A daemon that does not answer
// within 30 s, or 2 minutes if it is to create or remove a region, is given up: the error
// says so.
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
	limit := patient(verb)
	silent := fmt.Errorf("the daemon has not answered within %v: it is stopped, or its machine is overloaded: "+
		"have it go on (kill -CONT), or restart it", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, silent)
	defer cancel()
	code, body, err := c.post(ctx, body)
	if err != nil && context.Cause(ctx) == silent {
		return c.failed(verb, silent)
	}
	if err != nil {
		return err
	}
	var a Answer
	switch err := json.Unmarshal(body, &a); {
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return c.failed(verb, errors.New("the daemon takes no requests: it is of an older release than this client"))
	case err != nil:
		return c.failed(verb, fmt.Errorf("answer: %w; is it of another version?", err))
	case a.Version != ProtocolVersion:
		return c.failed(verb,
			fmt.Errorf("the daemon speaks control protocol %d, this client %d; use the client of its release",
				a.Version, ProtocolVersion))
	case a.Error != "":
		return c.failed(verb, errors.New(a.Error))
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return c.failed(verb, fmt.Errorf("result: %w; is it of another version?", err))
	}
	return nil
}

// post sends a request and returns the answer.
func (c *Client) post(ctx context.Context, request []byte) (code int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://xdpfabd"+pathRequest, bytes.NewReader(request))
	if err != nil {
		return 0, nil, explain(c.path, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, explain(c.path, err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return 0, nil, explain(c.path, err)
	}
	return resp.StatusCode, body, nil
}

func (c *Client) failed(verb string, err error) error {
	return fmt.Errorf("control socket %s: %s: %w", c.path, verb, err)
}

// explain returns an error that says why a connection failed.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: %s: start xdpfabd, or give its path: %w", ErrNoDaemon, path, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("control socket %s: %w; run as a user or group that may write to it", path, err)
	}
	return fmt.Errorf("control socket %s: %w", path, err)
}
