// SPDX-License-Identifier: Apache-2.0

//go:build linux

package census

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

func TestTake(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: lists BPF objects")
	}
	before, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	after, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	// Other processes may be at work on this machine: the test looks only for
	// its own items.
	added := Added(before, after)
	for _, want := range []string{fmt.Sprintf("process %d sleep", cmd.Process.Pid), fmt.Sprintf("BPF map %d", id)} {
		if !slices.Contains(added, want) {
			t.Errorf("%q is not in %q", want, added)
		}
	}
	if left := Added(after, after); left != nil {
		t.Errorf("no difference is %q", left)
	}
}

// A child that ended cannot leave anything behind, and is listed for its
// parent.
func TestEnded(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !slices.Contains(Ended(os.Getpid()), cmd.Process.Pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("an ended child is not found")
		}
	}
	all, err := processes()
	if err != nil || slices.Contains(all, fmt.Sprintf("process %d true", cmd.Process.Pid)) {
		t.Errorf("an ended process is listed: %q, %v", all, err)
	}
	if err := cmd.Wait(); err != nil || slices.Contains(Ended(os.Getpid()), cmd.Process.Pid) {
		t.Errorf("still waiting after Wait: %v", err)
	}
}
