// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	processes "github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// process is a daemon in a namespace: the test binary under its other guise.
type process struct {
	cmd  *exec.Cmd
	side *testnet.Side
	path string // of the control socket
	out  lockedBuffer
	done chan struct{} // closed when it has ended
}

// launch starts a daemon on a side, with capabilities instead of root if there
// are any, and returns at once.
func launch(t *testing.T, side *testnet.Side, path string, caps []uintptr, args ...string) *process {
	t.Helper()
	return launchInto(t, nil, side, path, caps, args...)
}

// launchInto is launch with a file for what the daemon says; nil for its buffer.
func launchInto(t *testing.T, says *os.File, side *testnet.Side, path string, caps []uintptr, args ...string) *process {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	p := &process{side: side, path: path, done: make(chan struct{})}
	// The binary is started by descriptor: go test keeps it in a folder that only root
	// can read.
	given := []string{"--control", path}
	if !slices.Contains(args, "--interface") {
		given = append(given, "--interface", side.IfName)
	}
	p.cmd = exec.Command("/proc/self/fd/3", append(given, args...)...)
	p.cmd.ExtraFiles = []*os.File{self}
	p.cmd.Env = append(os.Environ(), asDaemon+"=1", "NOTIFY_SOCKET=")
	if p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out; says != nil {
		p.cmd.Stdout, p.cmd.Stderr = says, says
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	if caps != nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: caps,
		}
	}
	if err := side.Do(p.cmd.Start); err != nil { // the child is in the namespace of the thread that forks it
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code is in ProcessState
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("daemon %v said:\n%s", args, p.out.String())
		}
	})
	return p
}

// nobody is the number of a user and of a group without rights.
const nobody = 65534

// ready waits until the daemon answers on its control socket.
func (p *process) ready(t *testing.T) control.Status {
	t.Helper()
	limit := limited(t)
	for {
		c, err := control.Dial(p.path)
		if err == nil {
			s, err := c.Status(limit)
			_ = c.Close()
			if err == nil && s.PID == p.cmd.Process.Pid {
				return s
			}
		}
		select {
		case <-p.done:
			t.Fatalf("the daemon ended with code %d: %s", p.cmd.ProcessState.ExitCode(), p.out.String())
		case <-limit.Done():
			t.Fatalf("the daemon does not get ready: %s", p.out.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// code waits for the end and returns the exit code, -1 for a signal.
func (p *process) code(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-limited(t).Done():
		t.Fatalf("the daemon does not end: %s", p.out.String())
		return 0
	}
}

func (p *process) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// attached reports whether the interface has an XDP program.
func attached(t *testing.T, side *testnet.Side) (on bool) {
	t.Helper()
	err := side.Do(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		l, err := h.LinkByIndex(side.IfIndex)
		if err == nil {
			on = l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// checkClean finds what a daemon should have removed when it ended.
func checkClean(t *testing.T, p *process) {
	t.Helper()
	if attached(t, p.side) {
		t.Error("an XDP program is left on the interface")
	}
	if _, err := os.Lstat(p.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the control socket is left: %v", err)
	}
}

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "c.sock") }

// A daemon is started, used by a peer, and asked to end, as by an operator.
func TestProcessServesAndEnds(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	p := launch(t, net.B, socketPath(t), nil, "--region", "counters=64KiB", "--region", "scores=4KiB:ro,key=0x7")
	s := p.ready(t)
	if s.Interface.Driver != "veth" || s.Interface.XDP != "native" || s.Interface.Copy != "copy" || s.Interface.Name != net.B.IfName ||
		s.Address != net.B.MAC.String() || len(s.Regions) != 2 || s.Counters["xdp_redirect"] != 0 {
		t.Errorf("status %+v", s)
	}
	if !attached(t, net.B) {
		t.Error("no XDP program on the interface")
	}
	addOnce(t, net.A, s.Address)
	if n := p.ready(t).Counters["xdp_redirect"]; n == 0 {
		t.Error("the peer's frames are not counted")
	}
	checkHelp(t, p)
	p.signal(t, unix.SIGHUP)
	p.said(t, `reload="start xdpfabd as this one was, with --takeover"`) // signals of different kinds may overtake one another
	p.signal(t, unix.SIGTERM)
	if code := p.code(t); code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
	checkClean(t, p)
	for _, want := range []string{"level=INFO msg=serving", "driver=veth", "xdp=native", "copy=copy", "name=scores key=0x0000000000000007 size=4096",
		"signal=terminated", "msg=closed"} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("log lacks %q", want)
		}
	}
}

// checkHelp finds counters of a real interface that metrics do not explain.
func checkHelp(t *testing.T, p *process) {
	t.Helper()
	c, err := control.Dial(p.path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var text string
	err = c.Call(limited(t), "metrics", nil, &text)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "# HELP xdpfab_") && strings.HasSuffix(line, "of the domain.\n") {
			t.Errorf("no help of its own: %s", line)
		}
	}
}

// addOnce runs the first operation of another node.
func addOnce(t *testing.T, side *testnet.Side, address string) {
	t.Helper()
	if n := add(t, side, address); n != 42 {
		t.Errorf("Add: %d", n)
	}
}

// add runs an operation of another node.
func add(t *testing.T, side *testnet.Side, address string) uint64 {
	t.Helper()
	var dom *xdpfab.Domain
	if err := side.Do(func() (err error) {
		attr := lively
		dom, err = xdpfab.Open(limited(t), side.IfName, attr)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer dom.CloseAll()
	peer, err := dom.Dial(limited(t), address)
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](limited(t), peer, "counters", 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := w.Add(limited(t), 42)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A killed daemon leaves a clean interface, and the next one starts at once.
func TestProcessKilledAndRestarted(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	path := socketPath(t)
	for round := range 3 {
		p := launch(t, net.B, path, nil, "--region", "counters=64KiB")
		s := p.ready(t)
		addOnce(t, net.A, s.Address) // 42 each time: the memory is new
		p.signal(t, unix.SIGKILL)
		if code := p.code(t); code != -1 {
			t.Errorf("round %d: exit code %d, want a signal", round, code)
		}
		// It goes as soon as no other process looks at it, such as that of another test.
		testnet.Eventually(t, "the XDP program goes with the process", func() bool { return !attached(t, net.B) })
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("round %d: a killed daemon cannot remove its socket, but: %v", round, err)
		}
	}
	p := launch(t, net.B, path, nil)
	p.ready(t)
	p.signal(t, unix.SIGINT)
	if code := p.code(t); code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
	checkClean(t, p)
}

// Go's way to end a process with the stacks of its goroutines, by a panic or by SIGQUIT,
// has not the exit code of a wrong configuration, and leaves the interface clean.
func TestProcessAborted(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	p := launch(t, net.B, socketPath(t), nil)
	p.ready(t)
	p.signal(t, unix.SIGQUIT)
	p.code(t)
	if status, is := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !is || !status.Signaled() || status.Signal() != unix.SIGABRT {
		t.Errorf("ended by %v, want SIGABRT", p.cmd.ProcessState)
	}
	testnet.Eventually(t, "the XDP program goes with the process", func() bool { return !attached(t, net.B) })
}

func TestProcessRefuses(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	first := launch(t, net.B, socketPath(t), nil, "--region", "counters=64KiB")
	first.ready(t)
	pid := fmt.Sprintf("process %d", first.cmd.Process.Pid)
	for name, c := range map[string]struct {
		side *testnet.Side
		path string
		caps []uintptr
		args []string
		code int
		want []string
	}{
		"second daemon":             {net.B, first.path, nil, nil, exitInterface, []string{pid, "serves " + net.B.IfName, "already"}},
		"second daemon, own socket": {net.B, socketPath(t), nil, nil, exitInterface, []string{pid, "serves " + net.B.IfName + " already", "--takeover --control " + first.path}},
		"socket of another":         {net.A, first.path, nil, nil, exitInterface, []string{pid, "of another network namespace", "leave it alone", "a path of its own"}},
		"missing interface":         {net.A, socketPath(t), nil, []string{"--interface", "nope0"}, exitInterface, []string{"nope0"}},
		"zero-copy on veth":         {net.A, socketPath(t), nil, []string{"--copy=zero-copy"}, exitInterface, []string{"zero-copy"}},
		"too many queues":           {net.A, socketPath(t), nil, []string{"--queues=2"}, exitInterface, []string{"1 queue, 2 were asked for"}},
		"no such core":              {net.A, socketPath(t), nil, []string{"--cores=1000"}, exitUsage, []string{"cores: core 1000"}},
		"no memory": {net.A, socketPath(t), nil, []string{"--region=a=:backing=/nonexistent/a"}, exitFailure,
			[]string{`region "a"`, "no such file"}},
		"no privilege": {net.A, "/nonexistent/c.sock", []uintptr{}, nil, exitInterface,
			[]string{"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF"}},
		"not enough privilege": {net.A, "/nonexistent/c.sock", []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_IPC_LOCK}, nil,
			exitInterface, []string{"CAP_BPF"}},
	} {
		p := launch(t, c.side, c.path, c.caps, c.args...)
		if code := p.code(t); code != c.code {
			t.Errorf("%s: exit code %d, want %d", name, code, c.code)
		}
		for _, want := range c.want {
			if !strings.Contains(unfolded(p.out.String()), want) {
				t.Errorf("%s: message lacks %q", name, want)
			}
		}
		if attached(t, net.A) {
			t.Errorf("%s: an XDP program is left", name)
		}
		t.Logf("%s: %s", name, strings.TrimSpace(p.out.String()))
	}
	removed := launch(t, net.A, socketPath(t), nil)
	removed.ready(t)
	if err := os.Remove(removed.path); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the daemon misses its control socket", func() bool {
		return strings.Contains(removed.out.String(), "control socket removed")
	})
	for _, path := range []string{removed.path, socketPath(t)} {
		p := launch(t, net.A, path, nil)
		want := fmt.Sprintf("process %d serves %s already, and its control socket, %s, was removed", removed.cmd.Process.Pid, net.A.IfName, removed.path)
		if code, text := p.code(t), unfolded(p.out.String()); code != exitInterface || !strings.Contains(text, want) {
			t.Errorf("beside a daemon without a socket: code %d, %s; want %s", code, text, want)
		}
	}
	first.signal(t, unix.SIGSTOP)
	testnet.Eventually(t, "the daemon is stopped", func() bool { return processes.Stopped(first.cmd.Process.Pid) })
	p := launch(t, net.B, first.path, nil)
	want := fmt.Sprintf("control socket is in use: the daemon at %s has not answered within 2s: it is stopped (%s, ", first.path, pid)
	remedy := fmt.Sprintf("have it go on with `kill -CONT %d`", first.cmd.Process.Pid)
	if code, text := p.code(t), unfolded(p.out.String()); code != exitInterface || !strings.Contains(text, want) || !strings.Contains(text, remedy) {
		t.Errorf("beside a daemon that is stopped: code %d, %s; want %s…): %s", code, text, want, remedy)
	}
	first.signal(t, unix.SIGCONT)
	if s := first.ready(t); len(s.Regions) != 1 || !attached(t, net.B) {
		t.Errorf("the first daemon suffered: %+v", s)
	}
}

// The capabilities of the systemd unit are enough; root is not needed.
func TestProcessWithoutRoot(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	dir, err := os.MkdirTemp("", "xdpfabd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(unit(t), "\nAmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW CAP_BPF CAP_PERFMON CAP_IPC_LOCK\n") {
		t.Error("the unit has other capabilities than this test")
	}
	caps := []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_IPC_LOCK}
	p := launch(t, net.B, filepath.Join(dir, "c.sock"), caps, "--region", "counters=64KiB")
	addOnce(t, net.A, p.ready(t).Address)
	second := launch(t, net.B, p.path, nil) // root's, whose socket has no place in a folder of another user
	if code := second.code(t); code != exitInterface || !strings.Contains(second.out.String(), "serves "+net.B.IfName+" already") {
		t.Errorf("a second daemon, root's: code %d, %s", code, second.out.String())
	}
	p.signal(t, unix.SIGTERM)
	if code := p.code(t); code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
	checkClean(t, p)
	p = launch(t, net.B, p.path, caps, "--socket-group", "0")
	if p.refused(t, "SupplementaryGroups="); strings.Contains(p.out.String(), "such as") {
		t.Errorf("another path would not help: %s", p.out.String())
	}
}

// said waits for a line of the log.
func (p *process) said(t *testing.T, text string) {
	t.Helper()
	limit := limited(t)
	for !strings.Contains(p.out.String(), text) {
		select {
		case <-limit.Done():
			t.Fatalf("the daemon does not say %q", text)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// The daemon goes on through changes that peers do not notice, or can wait for.
func TestProcessInterfaceChanges(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	p := launch(t, net.B, socketPath(t), nil, "--region", "counters=64KiB")
	s := p.ready(t)
	testnet.IP(t, net.B, "link set veth0 down")
	p.said(t, "interface is down")
	testnet.IP(t, net.B, "link set veth0 up")
	p.said(t, "interface is up again")
	addOnce(t, net.A, s.Address)
	testnet.IP(t, net.B, "link set veth0 mtu 3000")
	p.said(t, "to=3000")
	testnet.IP(t, net.B, "link set veth0 mtu 1500")
	p.said(t, "to=1500")
	add(t, net.A, s.Address)
	testnet.IP(t, net.B, "link set veth0 down", "link set veth0 name lan0", "link set lan0 up")
	p.said(t, "from=veth0 to=lan0")
	add(t, net.A, s.Address)
	renamed := []string{"--interface", "lan0", "--region", "counters=64KiB"}
	launch(t, net.B, socketPath(t), nil, renamed...).refused(t, fmt.Sprintf("lan0 is the veth0 of xdpfabd, process %d, renamed",
		s.PID), "`ip link set dev lan0 name veth0`")
	next := launch(t, net.B, p.path, nil, append(renamed, "--takeover")...)
	if code := next.code(t); code != exitFailure || !strings.Contains(unfolded(next.out.String()), "veth0 is named lan0 by now") {
		t.Errorf("takeover: %d, %s", code, next.out.String())
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
}

// The daemon ends with a reason when peers cannot reach it any more.
func TestProcessInterfaceLost(t *testing.T) {
	for reason, change := range map[string]func(*testing.T, *testnet.Side){
		"interface veth0 is gone":           func(t *testing.T, s *testnet.Side) { testnet.IP(t, s, "link del veth0") },
		"changed its hardware address from": func(t *testing.T, s *testnet.Side) { testnet.IP(t, s, "link set veth0 address 02:11:22:33:44:55") },
		"opened with an MTU of 1500 bytes":  func(t *testing.T, s *testnet.Side) { testnet.IP(t, s, "link set veth0 mtu 1400") },
		"was detached by another process":   detachProgram,
	} {
		t.Run(reason, func(t *testing.T) {
			net := testnet.NewPair(t, testnet.Options{})
			format := []string{"text", "json"}[len(reason)%2]
			p := launch(t, net.B, socketPath(t), nil, "--region", "counters=64KiB", "--log-format", format)
			p.ready(t)
			change(t, net.B)
			if code := p.code(t); code != exitFailure {
				t.Errorf("exit code %d, want 1", code)
			}
			if out := p.out.String(); strings.Count(out, "ERROR") != 1 || strings.Count(out, reason) != 1 ||
				strings.Contains(out, "xdpfabd: ") {
				t.Error("want the reason in one line of level error, and nowhere else")
			}
			if _, err := os.Lstat(p.path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the control socket is left: %v", err)
			}
		})
	}
}

// detachProgram cuts the link of the XDP program on veth0, as bpftool can. A link that
// another process is making hides those behind it for a moment.
func detachProgram(t *testing.T, side *testnet.Side) {
	testnet.Eventually(t, "the link of the program is found", func() bool {
		it := new(link.Iterator)
		defer it.Close()
		for it.Next() {
			info, err := it.Link.Info()
			if err != nil || info.XDP() == nil || int(info.XDP().Ifindex) != side.IfIndex || !ownsProgram(t, side, uint32(info.Program)) {
				continue
			}
			if err := it.Link.Detach(); err != nil {
				t.Fatal(err)
			}
			return true
		}
		return false
	})
}

// ownsProgram reports whether a program is the one on the side's interface: the list of
// links has those of all namespaces.
func ownsProgram(t *testing.T, side *testnet.Side, id uint32) bool {
	t.Helper()
	out, err := side.Command("ip", "-details", "link", "show", "veth0").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(out), fmt.Sprintf("prog/xdp id %d ", id))
}

// With UDP the daemon serves the addresses that the interface has at each moment, also
// one that comes after the start, as by DHCP.
func TestProcessAddressChanges(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, net.B, "addr flush dev veth0")
	p := launch(t, net.B, socketPath(t), nil, "--region", "counters=64KiB")
	p.ready(t)
	testnet.IP(t, net.B, "addr add 10.77.0.2/24 dev veth0")
	p.said(t, "to=10.77.0.2")
	add(t, net.A, "10.77.0.2")
	testnet.IP(t, net.B, "addr add 10.77.0.9/24 dev veth0", "addr del 10.77.0.2/24 dev veth0", "addr replace 10.77.0.9/24 dev veth0")
	p.said(t, "from=10.77.0.2")
	p.said(t, "to=10.77.0.9")
	add(t, net.A, "10.77.0.9")
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
}

// A daemon that uses fewer queues than there are says so, and how to change that, by what
// the driver of a veth can set.
func TestProcessFewerQueues(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{Queues: 2})
	p := launch(t, net.B, socketPath(t), nil, "--region", "counters=64KiB", "--queues", "1")
	p.said(t, "more queues than are in use")
	tool, err := exec.LookPath("ethtool")
	if testnet.Borrowed(t) != nil || err != nil {
		return
	}
	p.said(t, "stop the daemon, which keeps queues in use, and set fewer: ethtool -L "+net.B.IfName+" rx 1 tx 1, and the same at the other end")
	p.signal(t, syscall.SIGTERM)
	p.code(t)
	set := func(side *testnet.Side) {
		t.Helper()
		// the kernel releases the queues of closed sockets in a worker, after close has
		// returned
		testnet.Eventually(t, "the channels are set", func() bool {
			out, err := side.Command(tool, "-L", side.IfName, "rx", "1", "tx", "1").CombinedOutput()
			if err != nil && !strings.Contains(string(out), "existing zerocopy AF_XDP sockets") {
				t.Fatalf("%v: %s", err, out)
			}
			return err == nil
		})
	}
	set(net.B)
	if !testnet.KernelBefore(t, 6, 3) { // older ones do not tell beforehand
		p = launch(t, net.B, socketPath(t), nil, "--region", "counters=64KiB")
		p.said(t, "its other end sends with more queues than the 1 that it receives with")
		p.code(t)
	}
	set(net.A)
	launch(t, net.B, socketPath(t), nil, "--region", "counters=64KiB").ready(t)
}

// Fatal errors are log lines where log lines are JSON, and the exit code stays.
func TestProcessFailsInJSON(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	p := launch(t, net.B, socketPath(t), nil, "--interface", "nope0", "--log-format", "json")
	if code := p.code(t); code != exitInterface {
		t.Errorf("exit code %d, want 5", code)
	}
	for line := range strings.Lines(p.out.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil || !strings.Contains(line, "nope0") || record["level"] != "ERROR" {
			t.Errorf("line %q: %v", line, err)
		}
	}
	if p.out.String() == "" {
		t.Error("nothing was said")
	}
}

// Two daemons may serve one file; the second one logs a warning.
func TestProcessSharedFile(t *testing.T) {
	one, two := testnet.NewPair(t, testnet.Options{}), testnet.NewPair(t, testnet.Options{})
	region := "ledger=4KiB:backing=" + filepath.Join(t.TempDir(), "ledger")
	first := launch(t, one.B, socketPath(t), nil, "--region", region)
	first.ready(t)
	second := launch(t, two.B, socketPath(t), nil, "--region", region)
	second.said(t, "another process serves this file as well")
	if strings.Contains(first.out.String(), "another process serves") {
		t.Error("the first one warns")
	}
}
