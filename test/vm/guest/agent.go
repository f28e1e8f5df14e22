// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet/census"
)

const (
	beat      = time.Second
	quitGrace = 5 * time.Second // from asking for stacks to killing
	drain     = time.Minute     // from a command's end to that of its output
	maxLine   = 1 << 20         // bytes of a request
	chunk     = 16 << 10        // bytes of output in a reply
)

// agent answers requests that come over the port.
type agent struct {
	port io.ReadWriter

	mu      sync.Mutex // guards what follows
	encoder *json.Encoder
	running map[int]*os.Process // by request
}

// Serve talks to the host until the port ends. The caller is process 1.
func Serve(port io.ReadWriter, hello Hello) error {
	a := &agent{port: port, encoder: json.NewEncoder(port), running: map[int]*os.Process{}}
	if err := a.reply(Reply{Hello: &hello}); err != nil {
		return err
	}
	go func() {
		for range time.Tick(beat) {
			a.reap()
			if a.reply(Reply{Beat: true}) != nil {
				return
			}
		}
	}()
	lines := bufio.NewScanner(port)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("request %q: %w", lines.Text(), err)
		}
		go a.answer(r)
	}
	return lines.Err()
}

func (a *agent) reply(r Reply) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.encoder.Encode(r)
}

func (a *agent) answer(r Request) {
	var done Done
	var err error
	begin := time.Now()
	switch {
	case r.Run != nil:
		done.Code, err = a.run(r.ID, r.Run)
	case r.Of != 0:
		err = a.signal(r.Of, syscall.Signal(r.Signal))
	case r.Census:
		var found []string
		if found, err = census.Take(); err == nil {
			err = a.reply(Reply{ID: r.ID, Census: found})
		}
	case r.Dmesg:
		err = a.dmesg(r.ID)
	default:
		err = errors.New("an empty request")
	}
	if err != nil {
		done.Error = err.Error()
	}
	done.Took = time.Since(begin)
	_ = a.reply(Reply{ID: r.ID, Done: &done}) // a host that has gone needs no answer
}

func (a *agent) run(id int, c *Command) (code int, err error) {
	if len(c.Args) == 0 {
		return 0, errors.New("a command without arguments")
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), c.Env...)
	cmd.Stdout = &output{a, func(b []byte) Reply { return Reply{ID: id, Out: b} }}
	cmd.Stderr = &output{a, func(b []byte) Reply { return Reply{ID: id, Err: b} }}
	// The command gets a process group of its own, so that processes that it
	// leaves behind can be ended with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A busy host takes the rest of the output slowly. A process that the command leaves
	// behind with it is not waited for longer.
	cmd.WaitDelay = drain
	a.mu.Lock() // so that reap does not find a process that is not in running yet
	if err = cmd.Start(); err == nil {
		a.running[id] = cmd.Process
	}
	a.mu.Unlock()
	if err != nil {
		return 0, err
	}
	defer func() {
		a.mu.Lock()
		delete(a.running, id)
		a.mu.Unlock()
	}()
	if c.Limit > 0 {
		limit := time.Duration(c.Limit) * time.Second
		quit := time.AfterFunc(limit, func() { _ = cmd.Process.Signal(unix.SIGQUIT) })
		kill := time.AfterFunc(limit+quitGrace, func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) })
		defer quit.Stop()
		defer kill.Stop()
	}
	err = cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal()), nil
	}
	if errors.As(err, new(*exec.ExitError)) {
		err = nil
	}
	return cmd.ProcessState.ExitCode(), err
}

// reap waits for the orphans, which become children of process 1. Command waits
// for the agent's own children.
func (a *agent) reap() {
	a.mu.Lock()
	defer a.mu.Unlock()
	own := map[int]bool{}
	for _, p := range a.running {
		own[p.Pid] = true
	}
	for _, pid := range census.Ended(os.Getpid()) {
		if !own[pid] {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// output sends the output of a command.
type output struct {
	agent *agent
	wrap  func([]byte) Reply
}

func (o *output) Write(b []byte) (n int, err error) {
	for n < len(b) {
		part := b[n:min(len(b), n+chunk)]
		if err := o.agent.reply(o.wrap(part)); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

func (a *agent) signal(of int, sig syscall.Signal) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.running[of]
	if p == nil {
		return nil // it has just ended
	}
	err := p.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// dmesg sends the kernel's log as syslog(2) returns it.
func (a *agent) dmesg(id int) error {
	size, err := unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
	if err != nil {
		return err
	}
	b := make([]byte, size)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, b)
	if err != nil {
		return err
	}
	_, err = (&output{a, func(b []byte) Reply { return Reply{ID: id, Out: b} }}).Write(b[:n])
	return err
}
