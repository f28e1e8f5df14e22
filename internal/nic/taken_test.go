// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Of several processes that have the link of an interface open, the one that has the
// interface is named: the one in this namespace that began first.
func TestHolderOf(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	prog, err := bpf.Load(bpf.Config{MAC: [6]byte(p.A.MAC)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	var id uint32
	err = p.A.Do(func() error {
		if err := prog.Attach(p.A.IfIndex, bpf.Native); err != nil {
			return err
		}
		i, err := Inspect(p.A.IfName)
		if err == nil {
			id = i.Attached.holder.LinkID
		}
		return err
	})
	if err != nil || id == 0 {
		t.Fatalf("link %d, %v", id, err)
	}
	link := linkFile(t, id)
	var began []int
	for _, cmd := range []*exec.Cmd{p.A.Command("sleep", "1000"), exec.Command("sleep", "1000")} {
		cmd.ExtraFiles = []*os.File{link}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		began = append(began, cmd.Process.Pid)
	}
	testnet.Eventually(t, "the first process is in its namespace", func() bool {
		return process.Namespace(began[0]) != process.Namespace(os.Getpid())
	})
	if got := process.HolderOf(id); got != os.Getpid() {
		t.Errorf("process %d, want this one, %d, which began before %d", got, os.Getpid(), began)
	}
	_ = link.Close()
	_ = prog.Close()
	if got := process.HolderOf(id); got != began[1] {
		t.Errorf("process %d, want the second of %d, which is in this namespace", got, began)
	}
	if got := process.HolderOf(0); got != 0 {
		t.Errorf("process %d has no link", got)
	}
}

// linkFile is another descriptor of a link that this process has open.
func linkFile(t *testing.T, id uint32) *os.File {
	t.Helper()
	all, _ := filepath.Glob("/proc/self/fdinfo/*")
	for _, path := range all {
		info, _ := os.ReadFile(path)
		if !bytes.Contains(info, fmt.Appendf(nil, "\nlink_id:\t%d\n", id)) {
			continue
		}
		of, err := strconv.Atoi(filepath.Base(path))
		if err == nil {
			of, err = unix.FcntlInt(uintptr(of), unix.F_DUPFD_CLOEXEC, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		return os.NewFile(uintptr(of), "link")
	}
	t.Fatalf("no descriptor of link %d", id)
	return nil
}
