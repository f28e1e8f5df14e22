// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// maxAnswer bounds what a client reads, bytes; a status of thousands of regions
// is far smaller.
const maxAnswer = 64 << 20

// Client asks one daemon. Any number of goroutines may use it.
type Client struct {
	path string
	http *http.Client
}

// Dial finds the daemon at a socket. The error wraps ErrNoDaemon when there is
// none, or fs.ErrPermission when the caller may not connect.
func Dial(path string) (*Client, error) {
	// The connection only shows that somebody is there. Requests have their own,
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
func (c *Client) Status(ctx context.Context) (Status, error) { return get[Status](ctx, c, pathStatus) }

// Regions returns the regions that the daemon serves.
func (c *Client) Regions(ctx context.Context) ([]Region, error) {
	return get[[]Region](ctx, c, pathRegions)
}

// Metrics returns the daemon's metrics in the text format of Prometheus.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	b, err := c.fetch(ctx, pathMetrics)
	return string(b), err
}

func get[T any](ctx context.Context, c *Client, path string) (v T, err error) {
	b, err := c.fetch(ctx, path)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("control socket %s: answer to %s: %w; is it of another version?", c.path, path, err)
	}
	return v, nil
}

// fetch returns the body of the answer.
func (c *Client) fetch(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://xdpfabd"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", c.path, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, explain(c.path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, explain(c.path, err)
	}
	if resp.StatusCode != http.StatusOK {
		var f fault
		if json.Unmarshal(body, &f) != nil || f.Error == "" {
			f.Error = resp.Status
		}
		return nil, fmt.Errorf("control socket %s: %s: %s", c.path, path, f.Error)
	}
	return body, nil
}

// explain says what a failed connection means.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: %s: start xdpfabd, or give its path: %w", ErrNoDaemon, path, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("control socket %s: %w; run as a user or group that may write to it", path, err)
	}
	return fmt.Errorf("control socket %s: %w", path, err)
}
