// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// errRequest is wrapped by the errors of requests that a living guest did not carry out.
var errRequest = errors.New("a request failed in the guest")

// Run runs a command in the guest and returns its exit code. There is an error if
// the machine ended, the command could not be started, its output not be sent to the
// end, or the guest's clock is wrong, whatever the exit code. When the context ends, the
// command is killed.
func (m *Machine) Run(ctx context.Context, c guest.Command, out, errs io.Writer) (code int, err error) {
	begin := time.Now()
	call, id, err := m.send(guest.Request{Run: &c}, out, errs)
	if err != nil {
		return 0, err
	}
	select {
	case d := <-call.done:
		return d.Code,
			errors.Join(asError(d, "running "+strings.Join(c.Args, " ")), checkClock(d.Took, time.Since(begin)))
	case <-m.ended:
		return 0, m.explained()
	case <-ctx.Done():
	}
	if _, _, err := m.send(guest.Request{Signal: int(unix.SIGKILL), Of: id}, nil, nil); err != nil {
		return 0, err
	}
	select {
	case <-call.done:
		return 0, context.Cause(ctx)
	case <-m.ended:
		return 0, m.explained()
	}
}

// Census lists what is in the guest; see package census.
func (m *Machine) Census(ctx context.Context) ([]string, error) {
	c, err := m.ask(ctx, guest.Request{Census: true}, nil)
	if err != nil {
		return nil, err
	}
	return c.census, nil
}

// Dmesg is the kernel's whole log.
func (m *Machine) Dmesg(ctx context.Context) (string, error) {
	var log strings.Builder
	_, err := m.ask(ctx, guest.Request{Dmesg: true}, &log)
	return log.String(), err
}

// ask sends a request and waits for its answer.
func (m *Machine) ask(ctx context.Context, r guest.Request, out io.Writer) (*call, error) {
	c, _, err := m.send(r, out, nil)
	if err != nil {
		return nil, err
	}
	select {
	case d := <-c.done:
		return c, asError(d, "asking for its state")
	case <-m.ended:
		return nil, m.explained()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func asError(d guest.Done, doing string) error {
	if d.Error == "" {
		return nil
	}
	return fmt.Errorf("%w: %s: %s", errRequest, doing, d.Error)
}

// send writes a request to the port.
func (m *Machine) send(r guest.Request, out, errs io.Writer) (*call, int, error) {
	m.mu.Lock()
	m.serial++
	r.ID = m.serial
	c := &call{out: out, err: errs, done: make(chan guest.Done, 1)}
	m.calls[r.ID] = c
	err := json.NewEncoder(m.port).Encode(r)
	m.mu.Unlock()
	if err != nil {
		m.end(fmt.Errorf("%w: %w", ErrClosed, err))
		<-m.ended
		return nil, 0, m.explained()
	}
	return c, r.ID, nil
}
