// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// prefix starts the name of every namespace made here; the creator's pid follows.
const prefix = "xf"

// Do runs f on an OS thread that is inside the namespace, and returns f's error.
// Files, sockets and BPF links that f opens belong to the namespace and stay
// usable from any thread afterwards. Goroutines that f starts run outside. If f
// leaves by runtime.Goexit (as t.FailNow does), so does the caller.
func (s *Side) Do(f func() error) error {
	if !s.NS.IsOpen() {
		return fmt.Errorf("veth: namespace %s is closed", s.Name)
	}
	return OnThread(func() error {
		if err := netns.Set(s.NS); err != nil {
			return fmt.Errorf("veth: entering namespace %s: %w (needs CAP_SYS_ADMIN)", s.Name, err)
		}
		return f()
	})
}

// Command prepares a command that runs inside the namespace.
func (s *Side) Command(name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", s.Name, name}, args...)...)
}

// settle makes the namespaces of sides, which do not send on their own.
func settle(sides ...*Side) (err error) {
	for _, s := range sides {
		if s.NS, err = create(s.Name); err == nil {
			err = s.Do(quiet)
		}
		if err != nil {
			return fmt.Errorf("namespace %s: %w (needs root: CAP_SYS_ADMIN)", s.Name, err)
		}
	}
	return nil
}

// create makes a named, empty namespace without moving the caller into it.
func create(name string) (netns.NsHandle, error) {
	h := netns.None()
	if _, err := guard(); err != nil {
		return h, err
	}
	if err := prepareFolder(); err != nil {
		return h, err
	}
	err := OnThread(func() (err error) {
		h, err = netns.NewNamed(name)
		return err
	})
	return h, err
}

// OnThread runs f on a locked OS thread of its own and puts the thread back into
// the namespace it came from. A thread that cannot be put back is not unlocked,
// so that the runtime ends it rather than give it to another goroutine. If f leaves by
// runtime.Goexit, so does the caller.
func OnThread(f func() error) error {
	var err error
	returned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		home, herr := netns.Get()
		if herr != nil {
			runtime.UnlockOSThread()
			err, returned = fmt.Errorf("veth: reading the thread's namespace: %w", herr), true
			return
		}
		defer home.Close()
		defer func() {
			if netns.Set(home) == nil {
				runtime.UnlockOSThread()
			}
		}()
		err = f()
		returned = true
	}()
	<-done
	if !returned {
		runtime.Goexit()
	}
	return err
}

// quiet keeps the namespace's IPv6 from sending on its own: duplicate detection
// and router solicitations would be stray frames in a test that counts frames.
// Errors are ignored: with a read-only /proc/sys the network works, but is not
// quiet.
func quiet() error {
	for _, v := range []string{"disable_ipv6=0", "accept_dad=0", "accept_ra=0", "router_solicitations=0"} {
		key, val, _ := strings.Cut(v, "=")
		for _, scope := range []string{"all", "default"} {
			err := os.WriteFile("/proc/sys/net/ipv6/conf/"+scope+"/"+key, []byte(val), 0)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EROFS) &&
				!errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
	}
	return nil
}

// sweep deletes namespaces whose creator died without cleaning up (a test that
// ran into its deadline, a killed demo). The name holds the creator's pid, so
// those of living processes are left alone.
func sweep() {
	entries, err := os.ReadDir("/run/netns")
	if err != nil {
		return // the directory appears with the first named namespace
	}
	for _, e := range entries {
		var pid, n int
		var side string
		if _, err := fmt.Sscanf(e.Name(), prefix+"%d-%d-%1s", &pid, &n, &side); err != nil {
			continue
		}
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = unname(e.Name())
		}
	}
}

// unname takes a namespace's name away. A name of which another process has taken the
// mount, or all, is as good as removed: programs that make mount namespaces while tests
// run, and what cleans up after them, do that at times.
func unname(name string) error {
	path := filepath.Join("/run/netns", name)
	// More than one mount lies there if `ip netns` made the folder a mount meanwhile.
	var err error
	for err == nil {
		err = unix.Unmount(path, unix.MNT_DETACH)
	}
	if err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("veth: unmounting %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
