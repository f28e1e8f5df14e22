// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet/census"
	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// shell runs a script in the guest.
func shell(ctx context.Context, m *Machine, script string, limit int) (code int, out, errs string, err error) {
	var o, e bytes.Buffer
	c := guest.Command{Args: []string{"sh", "-c", script}, Env: []string{"GREETING=hello"}, Limit: limit}
	code, err = m.Run(ctx, c, &o, &e)
	return code, o.String(), e.String(), err
}

func TestCommands(t *testing.T) {
	k := kernel(t, DefaultKernel)
	files := map[string]string{"/vm/note": write(t, "note", "from the host")}
	m := boot(t, Config{Image: Image{Kernel: k, Files: files}})
	if m.Hello.Release != k.Release || m.Hello.CPUs != 2 || m.Hello.Memory < 128<<20 {
		t.Errorf("%+v, want Linux %s on two CPUs", m.Hello, k.Release)
	}
	ctx := limited(t)
	for _, c := range []struct {
		script    string
		code      int
		out, errs string
	}{
		{"echo $GREETING; cat /vm/note; echo trouble >&2; exit 7", 7, "hello\nfrom the host", "trouble\n"},
		{"kill -9 $$", 128 + 9, "", ""},
		{"uname -r", 0, k.Release + "\n", ""},
		{"ip -br link show lo | cut -c1-2; setpriv --version | cut -c1-7; tc -V | cut -c1-2", 0,
			"lo\nsetpriv\ntc\n", ""},
	} {
		code, out, errs, err := shell(ctx, m, c.script, 0)
		if err != nil || code != c.code || out != c.out || errs != c.errs {
			t.Errorf("%s: code %d, %q, %q, %v; want %d, %q, %q", c.script, code, out, errs, err, c.code, c.out, c.errs)
		}
	}
	_, err := m.Run(ctx, guest.Command{Args: []string{"/no/such"}}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "/no/such") {
		t.Errorf("a program that is not there: %v", err)
	}
	if code, _, _, err := shell(ctx, m, "sleep 1000", 1); err != nil || code != 128+int(unix.SIGQUIT) {
		t.Errorf("a command past its limit: code %d, %v", code, err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, _, _, err := shell(short, m, "sleep 1000", 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command whose context ended: %v", err)
	}
	leaks(t, m)
}

// leaks leaves behind what a test could leave behind, one of each kind that a
// shell can make.
func leaks(t *testing.T, m *Machine) {
	t.Helper()
	ctx := limited(t)
	before, err := m.Census(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, errs, err := shell(ctx, m, `setsid sleep 1000 >/dev/null 2>&1 &
		ip netns add left
		ip link add vx0 type veth peer name vx1
		ip link set vx0 netns left`, 0); err != nil || errs != "" {
		t.Fatal(errs, err)
	}
	after, err := m.Census(ctx)
	if err != nil {
		t.Fatal(err)
	}
	added := census.Added(before, after)
	for _, want := range []string{"sleep", "/run/netns/left", "vx1"} {
		if !slices.ContainsFunc(added, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("the census does not see %s: %q", want, added)
		}
	}
}

func TestKernelPanic(t *testing.T) {
	m := boot(t, Config{Image: Image{Kernel: kernel(t, DefaultKernel)}})
	_, _, _, err := shell(limited(t), m, "echo c >/proc/sysrq-trigger; sleep 1000", 0)
	fails(t, err, ErrPanic, "Kernel panic", "sysrq")
	if len(m.Warnings()) == 0 {
		t.Errorf("no warnings in\n%s", m.Console())
	}
}

// A guest that stops answering, here because QEMU is stopped, is given up.
func TestGuestHangs(t *testing.T) {
	m := boot(t, Config{Image: Image{Kernel: kernel(t, DefaultKernel)}, Silence: 5 * time.Second})
	if err := unix.Kill(m.cmd.Process.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, _, _, err := shell(limited(t), m, "true", 0)
	fails(t, err, ErrHang, "5s")
}

// A guest whose first program never talks is given up as well.
func TestGuestDoesNotBoot(t *testing.T) {
	k := kernel(t, DefaultKernel)
	begins := func(with string) Image { return Image{Kernel: k, Init: write(t, "init", "#!/bin/busybox "+with+"\n")} }
	_, err := Start(limited(t), Config{Image: begins("sleep"), Accel: TCG, BootLimit: 5 * time.Second})
	fails(t, err, ErrBoot, "5s")
	// A first program that ends makes the kernel panic.
	_, err = Start(limited(t), Config{Image: begins("true"), Accel: TCG})
	fails(t, err, ErrPanic, "Attempted to kill init")
}

func TestTooLittleMemory(t *testing.T) {
	k := kernel(t, DefaultKernel)
	_, err := Start(limited(t), Config{Image: Image{Kernel: k}, Accel: TCG, Memory: 64 << 20})
	fails(t, err, ErrMemory, "64 MiB", "-memory")
	_, err = Start(limited(t), Config{Image: Image{Kernel: k}, Accel: TCG, Memory: 1 << 50})
	fails(t, err, ErrMemory, "this machine has")
	m := boot(t, Config{Image: Image{Kernel: k}, Memory: 512 << 20})
	ctx := limited(t)
	first, err := m.look(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// The shell writes more to /dev/shm than there is memory: the kernel kills the
	// shell, or panics when there is nothing left to kill.
	var problems []string
	fill := "mount -o remount,size=4G /dev/shm; while cat /bin/busybox >>/dev/shm/fill; do :; done"
	if _, _, _, err = shell(ctx, m, fill, 0); err == nil {
		problems, err = m.inspect(ctx, first)
	}
	if err != nil {
		fails(t, err, ErrMemory, "in the guest", "-memory")
	} else if all := strings.Join(problems, "; "); !strings.Contains(all, "Out of memory") ||
		!strings.Contains(all, "-memory") {
		t.Errorf("the guest ran out of memory: %q", all)
	}
}

// asParent makes TestQEMUDiesWithItsParent the process that is killed.
const asParent = "XDPFAB_VM_TEST_PARENT"

// Nothing of a machine outlives the process that started it: QEMU is told to die
// with it, which needs no cleanup to run.
func TestQEMUDiesWithItsParent(t *testing.T) {
	k := kernel(t, DefaultKernel)
	if os.Getenv(asParent) != "" {
		fmt.Printf("QEMU is %d\n", boot(t, Config{Image: Image{Kernel: k}}).cmd.Process.Pid)
		<-limited(t).Done() // the parent kills this process before
	}
	cmd := exec.CommandContext(limited(t), os.Args[0], "-test.run=^TestQEMUDiesWithItsParent$", "-boot")
	cmd.Env = append(os.Environ(), asParent+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid := 0
	if _, err := fmt.Sscanf(line, "QEMU is %d", &pid); err != nil || !lives(pid) {
		t.Errorf("the process that starts QEMU says %q", line)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for ctx := limited(t); pid != 0 && lives(pid); time.Sleep(10 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("QEMU, process %d, is there still", pid)
		}
	}
}

// lives reports whether a process has not ended, waited for or not.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

func TestClosedMachine(t *testing.T) {
	m := boot(t, Config{Image: Image{Kernel: kernel(t, DefaultKernel)}})
	pid := m.cmd.Process.Pid
	_ = m.Close()
	if lives(pid) {
		t.Errorf("QEMU, process %d, lives after Close", pid)
	}
	if _, err := m.Census(limited(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed machine: %v", err)
	}
}

func TestNoQEMU(t *testing.T) {
	k := kernel(t, DefaultKernel)
	t.Setenv("PATH", t.TempDir())
	if _, err := exec.LookPath(qemuProgram); err == nil {
		t.Fatal("still there")
	}
	_, err := Start(limited(t), Config{Image: Image{Kernel: k}, Accel: TCG})
	fails(t, err, ErrHost, qemuProgram, "apt-get install qemu-system-x86")
}
