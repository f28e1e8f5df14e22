// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// limit is how long a process may take for anything that a test waits for.
// Reaching it is a failure; a machine under load stays far below.
var limit = 5 * time.Minute * testnet.Slow

// glance is the time between two looks at a process. Where instructions are translated a
// look, such as `stat`, may take 10 ms of the processor that the process is to have.
var glance = 5 * time.Millisecond * testnet.Slow * testnet.Slow

// nobody is a user and a group without rights.
const nobody = 65534

// process is a child under test. It ends with the test at the latest.
type process struct {
	t    *testing.T
	name string // for messages
	cmd  *exec.Cmd
	out  buffer
	err  complaint
	done chan struct{} // closed when it has ended
}

// buffer collects output while a test reads it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// complaint is what a process says on stderr.
type complaint struct{ buffer }

// String is the text without the line breaks of a long error: see tell.Fold.
func (b *complaint) String() string { return strings.ReplaceAll(b.buffer.String(), "\n  ", " ") }

// option changes how a process is started.
type option func(*exec.Cmd)

// unprivileged starts it as nobody, without any capability.
func unprivileged(c *exec.Cmd) {
	c.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
}

func input(text string) option { return func(c *exec.Cmd) { c.Stdin = strings.NewReader(text) } }

func env(pairs ...string) option { return func(c *exec.Cmd) { c.Env = append(os.Environ(), pairs...) } }

// launch starts the program on a thread that lasts as long as the program does: the
// death signal comes with the end of the thread, and a thread that the runtime had back
// could be given to a poller, which ends it.
func (p *process) launch(side *testnet.Side) error {
	started := make(chan error, 1)
	run := func() error {
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the exit code is in ProcessState
			close(p.done)
		}
		return nil
	}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if side == nil {
			_ = run()
		} else if err := side.Do(run); err != nil {
			started <- err // run was not called
		}
	}()
	return <-started
}

// genericToo has those who open the interface take generic XDP, on NICs whose driver has
// no native XDP.
func genericToo(t *testing.T, side *testnet.Side, path string, args []string) []string {
	if n := testnet.Borrowed(t); n == nil || n.XDP != "generic" || len(args) == 0 ||
		slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--xdp") || strings.HasPrefix(arg, "--transport") }) {
		return args
	}
	opens := []string{"atomic", "bench", "diagnose", "get", "list", "ping", "put", "receive", "send", "watch"}
	_, hosted := hosts.Load(side)
	if path == xdpfabdPath && slices.Contains(args, "--interface") ||
		path == xdpfabPath && !hosted && slices.Contains(args, "-i") && slices.Contains(opens, args[0]) {
		return slices.Concat(args, []string{"--xdp", "any"})
	}
	return args
}

// start runs a program, in the side's namespace unless that is nil. It ends with
// this process, however that ends.
func start(t *testing.T, side *testnet.Side, path string, args []string, options ...option) *process {
	t.Helper()
	if path == xdpfabPath && slices.Contains(args, "-i") && !slices.Contains(args, "--timeout") {
		// A long give-up time, since a live peer may be kept from answering by
		// a busy machine.
		args = slices.Concat(args, []string{"--timeout", limit.String()})
	}
	args = genericToo(t, side, path, args)
	p := &process{t: t, name: path[strings.LastIndexByte(path, '/')+1:] + " " + strings.Join(args, " "), done: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = limit // in case a grandchild keeps the pipes open
	for _, o := range options {
		o(p.cmd)
	}
	through(side, p.cmd)
	if err := p.launch(side); err != nil {
		t.Fatalf("starting %s: %v", p.name, err)
	}
	t.Cleanup(func() {
		most := 400
		if t.Failed() && path == xdpfabdPath { // its log, and where it stands
			most = 1 << 16
			_ = p.cmd.Process.Signal(syscall.SIGQUIT)
			select {
			case <-p.done:
			case <-time.After(stacksTime):
			}
		}
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%s\nstdout: %.400s\nstderr: %.*s", p.name, p.out.String(), most, p.err.String())
		}
	})
	return p
}

// stacksTime is how long a daemon may take to print its stacks when a test has failed.
const stacksTime = 10 * time.Second

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("%s: sending %v: %v", p.name, sig, err)
	}
}

// halt stops the process, and returns when none of its threads runs any more.
func (p *process) halt() {
	p.t.Helper()
	p.signal(unix.SIGSTOP)
	for err := error(unix.EINTR); err != nil; {
		err = unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			p.t.Fatalf("%s: waiting until it stands: %v", p.name, err)
		}
	}
}

// code waits for the end and returns the exit code, -1 after a signal.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		p.t.Fatalf("%s does not end within %v", p.name, limit)
		return 0
	}
}

// wants fails the test unless the process ends with the given code and its
// complaint contains all the texts.
func (p *process) wants(code int, texts ...string) {
	p.t.Helper()
	if got := p.code(); got != code {
		p.t.Errorf("%s: exit code %d, want %d: %s", p.name, got, code, p.err.String())
	}
	complaint := p.complaint(code)
	for _, want := range texts {
		if !strings.Contains(complaint, want) {
			p.t.Errorf("%s: stderr lacks %q: %s", p.name, want, complaint)
		}
	}
}

// complaint is the standard error, or what it would be without --json, where it is the
// error of a command as JSON. That has the process's exit code, and begins with no name.
func (p *process) complaint(code int) string {
	p.t.Helper()
	var e struct {
		Error string
		Code  int
	}
	if json.Unmarshal([]byte(p.err.String()), &e) != nil {
		return p.err.String()
	}
	if e.Code != code || strings.HasPrefix(e.Error, "xdpfab: ") {
		p.t.Errorf("%s: want code %d in the error, and no name of the command before it: %s", p.name, code, p.err.String())
	}
	return "xdpfab: " + e.Error
}

// eventually polls until ok, or the process ends, or the limit.
func (p *process) eventually(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.After(limit)
	for !ok() {
		select {
		case <-p.done:
			p.t.Fatalf("%s ended with code %d before %s: %s", p.name, p.cmd.ProcessState.ExitCode(), what, p.err.String())
		case <-deadline:
			p.t.Fatalf("%s: not within %v: %s", p.name, limit, what)
		case <-time.After(glance):
		}
	}
}

// xdpfab runs the client to its end.
func xdpfab(t *testing.T, side *testnet.Side, args []string, options ...option) *process {
	t.Helper()
	p := start(t, side, xdpfabPath, args, options...)
	p.code()
	return p
}

// answer runs the client with --json, which must succeed, and decodes its
// output. Fields that T does not have are allowed; text around the JSON is not.
func answer[T any](t *testing.T, side *testnet.Side, args ...string) (v T) {
	t.Helper()
	return decoded[T](start(t, side, xdpfabPath, append(args, "--json")))
}

// decoded decodes the output of a process, which must succeed.
func decoded[T any](p *process) (v T) {
	p.t.Helper()
	p.wants(0)
	if err := json.Unmarshal([]byte(p.out.String()), &v); err != nil {
		p.t.Fatalf("%s: %v in %.2000q; stderr %s", p.name, err, p.out.String(), p.err.String())
	}
	if p.err.String() != "" {
		p.t.Errorf("%s succeeded and said on stderr: %s", p.name, p.err.String())
	}
	return v
}
