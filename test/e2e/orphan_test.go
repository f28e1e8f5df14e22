// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	fab "github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// asParent, an environment variable, turns the test binary into a program that serves a
// region through a daemon and has a child with copies of its sockets, or, by its value,
// into that child or the first process of a namespace in which the program runs.
const (
	asParent     = "XDPFAB_E2E_PARENT"
	parentItself = "1"
	parentChild  = "child"
	parentFirst  = "first"
)

// parentServes is the number of its endpoint.
const parentServes = 77

// childHolds is what the child says once it has the sockets. Its number follows.
const childHolds = "the child is "

func parentMain(args []string) int {
	var err error
	switch os.Getenv(asParent) {
	case parentChild:
		if len(socketsOf()) == 0 {
			err = errors.New("the child has no socket")
		}
		fmt.Println(childHolds + strconv.Itoa(os.Getpid()))
	case parentFirst:
		err = relaunch(parentItself, args, nil)
	default:
		err = beParent(args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "parent:", err)
		return 1
	}
	time.Sleep(2 * limit) // to be killed
	return 1
}

// relaunch starts this binary as another one of the three.
func relaunch(as string, args []string, files []*os.File) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, args...)
	c.Stdout, c.Stderr, c.ExtraFiles = os.Stdout, os.Stderr, files
	c.Env = append(os.Environ(), asParent+"="+as)
	return c.Start()
}

func beParent(ifname string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	d, err := fab.Open(ctx, ifname, fab.DomainAttr{Attach: fi.AttachAlways, GiveUp: limit})
	if err != nil {
		return err
	}
	if _, err = d.NewRegion("own", 4096); err != nil {
		return err
	}
	ep, err := d.NewEndpoint(fab.EndpointAttr{Number: parentServes})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		return err
	}
	return relaunch(parentChild, nil, socketsOf())
}

// socketsOf returns copies of the sockets of this process.
func socketsOf() (all []*os.File) {
	names, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range names {
		fd, err := strconv.Atoi(filepath.Base(name))
		is, _ := os.Readlink(name)
		if err != nil || !strings.HasPrefix(is, "socket:") {
			continue
		}
		if own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			all = append(all, os.NewFile(uintptr(own), is))
		}
	}
	return all
}

// inNamespace starts a program as the first one of a namespace of processes.
func inNamespace(c *exec.Cmd) { c.SysProcAttr.Cloneflags |= unix.CLONE_NEWPID }

// A program is gone when the process that connected has been killed, though a child of it
// has the connection: its number and its memory are free for another one. That holds if
// another daemon has taken over, and if daemon and program do not see each other's
// process numbers.
func TestChildKeepsNothing(t *testing.T) {
	testnet.Require(t)
	for name, x := range map[string]inheritance{
		"alike": {}, "taken over": {takeover: true}, "program inside": {program: true},
		"daemon inside": {daemon: true}, "both inside": {daemon: true, program: true},
	} {
		t.Run(name, func(t *testing.T) {
			if x.daemon && testnet.KernelBefore(t, 6, 5) {
				t.Skip("before Linux 6.5 a daemon cannot watch a process that it does not see")
			}
			x.t, x.side, x.socket = t, testnet.NewPair(t, testnet.Options{}).A, filepath.Join(t.TempDir(), socketName)
			d := x.serve()
			p := x.attach(d)
			if x.takeover {
				next := x.serve("--takeover")
				next.ready()
				d.wants(0)
				d = next
			}
			for range 2 {
				x.kill(p)
				d.eventually("without the program", func() bool {
					s, err := d.ask()
					return err == nil && len(s.Guests) == 0
				})
				if child := childOf(t, p); !x.program && unix.Kill(child, 0) != nil {
					t.Errorf("the child with the connection, process %d, is gone", child)
				}
				p = x.attach(d)
			}
		})
	}
}

// inheritance is a daemon with a program that has a child.
type inheritance struct {
	t               *testing.T
	side            *testnet.Side
	socket          string
	daemon, program bool // is in a namespace of processes of its own
	takeover        bool // before the program dies
}

// serve starts a daemon.
func (x *inheritance) serve(more ...string) *node {
	options := []option{env("NOTIFY_SOCKET=")}
	if x.daemon {
		options = append(options, inNamespace)
	}
	flags := append([]string{"--interface", x.side.IfName, "--control", x.socket}, more...)
	return &node{start(x.t, x.side, xdpfabdPath, flags, options...), x.side, x.socket}
}

// attach starts the program, and waits until it has a child.
func (x *inheritance) attach(d *node) *process {
	x.t.Helper()
	self, err := os.Executable()
	if err != nil {
		x.t.Fatal(err)
	}
	options := []option{env(asParent+"="+parentItself, fi.ControlEnv+"="+x.socket)}
	if x.program {
		options = []option{env(asParent+"="+parentFirst, fi.ControlEnv+"="+x.socket), inNamespace}
	}
	d.eventually("answering", func() bool { _, err := d.ask(); return err == nil })
	p := start(x.t, x.side, self, []string{x.side.IfName}, options...)
	x.t.Cleanup(func() { _ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) }) // and its child
	p.eventually("having a child", func() bool { return strings.Contains(p.out.String(), childHolds) })
	return p
}

// kill kills the process that has connected, which may have another one above it.
func (x *inheritance) kill(p *process) {
	t, inside := x.t, x.program
	t.Helper()
	pid := p.cmd.Process.Pid
	if inside { // below the first one; each thread has children of its own
		children := ""
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, path := range lists {
			text, _ := os.ReadFile(path)
			children += string(text)
		}
		var err error
		if pid, err = strconv.Atoi(strings.TrimSpace(children)); err != nil {
			t.Fatalf("want one child of the first process: %v", err)
		}
	}
	if err := unix.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// childOf returns the number of the child as it says.
func childOf(t *testing.T, p *process) int {
	t.Helper()
	_, text, _ := strings.Cut(p.out.String(), childHolds)
	text, _, _ = strings.Cut(text, "\n")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
