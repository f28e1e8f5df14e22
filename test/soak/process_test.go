// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// lockedBuffer collects the output of a process.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// leashed is a process with a pipe as its input. The process, or the shell around
// it, ends when the pipe does, so that nothing outlives the test process, however
// that ends.
type leashed struct {
	cmd  *exec.Cmd
	end  io.Closer     // this side's end of the pipe
	done chan struct{} // closed when the process has ended
}

func leash(t *testing.T, cmd *exec.Cmd, side *testnet.Side, out io.Writer) *leashed {
	t.Helper()
	in, err := cmd.StdinPipe()
	must(t, err)
	cmd.Stdout, cmd.Stderr = out, out
	start := cmd.Start
	if side != nil { // the child is in the namespace of the thread that forks it
		start = func() error { return side.Do(cmd.Start) }
	}
	must(t, start())
	l := &leashed{cmd: cmd, end: in, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // mostly ended by us: the code says nothing
		close(l.done)
	}()
	t.Cleanup(l.letGo)
	return l
}

// letGo ends the process and waits for that.
func (l *leashed) letGo() {
	_ = l.end.Close()
	<-l.done
}

// daemon is an xdpfabd that can be killed and started again; its memory is a file. If it
// has a resident region, which is kept in a folder, the ordinary one is the file.
type daemon struct {
	side *testnet.Side
	args []string
	path string // of the control socket
	file []byte // mapped
	pins string // the folder; empty if there is no resident region
	out  lockedBuffer
	run  *leashed
	pid  int
}

func newDaemon(t *testing.T, side *testnet.Side, s setting) *daemon {
	t.Helper()
	bin, err := daemonBinary()
	must(t, err)
	dir := t.TempDir()
	d := &daemon{side: side, path: filepath.Join(dir, "c.sock")}
	file := filepath.Join(dir, "memory")
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(regionSize))
	d.file, err = unix.Mmap(int(f.Fd()), 0, regionSize, unix.PROT_READ, unix.MAP_SHARED)
	must(t, err)
	t.Cleanup(func() { _ = unix.Munmap(d.file) })
	d.args = append([]string{bin, "--interface", side.IfName, "--control", d.path}, s.daemonArgs...)
	key := regionKey
	if s.resident {
		key = ordinaryKey
		d.reside(t)
	}
	d.args = append(d.args, "--region", fmt.Sprintf("file=%d:key=%d,backing=%s", regionSize, key, file))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the daemon said:\n%s", d.out.String())
		}
	})
	return d
}

// supervise is a shell script that runs a command and kills it when the input ends.
const supervise = `exec 3<&0; "$@" & p=$!; { read -r _ <&3; kill -9 $p; } & r=$!; wait $p; kill $r`

// start starts the daemon and waits until it serves. One that ends at once is
// started again, as systemd does: after a crash the kernel takes some time to
// free the interface, on a busy machine longer than the daemon waits.
func (d *daemon) start(t *testing.T) {
	t.Helper()
	end := time.Now().Add(patience)
	for old := d.pid; d.pid == old && time.Now().Before(end); {
		d.run = d.launch(t)
		for ended := false; d.pid == old && !ended && time.Now().Before(end); {
			select {
			case <-d.run.done:
				ended = true
				survived.add("daemon starts repeated", 1)
			case <-time.After(2 * time.Millisecond):
				if s, err := d.status(t); err == nil {
					d.pid = s.PID
				}
			}
		}
		if d.pid != old {
			return
		}
	}
	t.Fatal("the daemon does not get ready")
}

// launch starts a process of the daemon, with more arguments.
func (d *daemon) launch(t *testing.T, more ...string) *leashed {
	t.Helper()
	cmd := exec.Command("sh", slices.Concat([]string{"-c", supervise, "sh"}, d.args, more)...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET=")
	return leash(t, cmd, d.side, &d.out)
}

func (d *daemon) status(t *testing.T) (control.Status, error) {
	t.Helper()
	c, err := control.Dial(d.path)
	if err != nil {
		return control.Status{}, err
	}
	defer c.Close()
	return c.Status(limited(t))
}

// kill kills the daemon as a crash would, and waits until it is gone.
func (d *daemon) kill(t *testing.T) {
	t.Helper()
	must(t, unix.Kill(d.pid, unix.SIGKILL))
	<-d.run.done
	survived.add("daemon kills", 1)
	if d.pins != "" {
		survived.add("daemon kills: resident", 1)
	}
}

// stall stops the daemon for a while, as a hypervisor would.
func (d *daemon) stall(t *testing.T, while time.Duration) {
	t.Helper()
	d.during(t, func() { time.Sleep(while) })
}

// during runs f while the daemon is stopped.
func (d *daemon) during(t *testing.T, f func()) {
	t.Helper()
	must(t, unix.Kill(d.pid, unix.SIGSTOP))
	f()
	must(t, unix.Kill(d.pid, unix.SIGCONT))
	survived.add("daemon stalls", 1)
}

// disguised returns a command that runs this test binary as another process.
func disguised(as string, env ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(append(os.Environ(), guise+"="+as), env...)
	return cmd
}

// hogs loads every core until the returned function is called.
func hogs(t *testing.T, n int) (end func()) {
	t.Helper()
	var all []*leashed
	for range n {
		all = append(all, leash(t, disguised("hog"), nil, io.Discard))
	}
	survived.add("cpu hogs", n)
	return func() {
		for _, l := range all {
			l.letGo()
		}
	}
}
