// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// contained says to a process of this test binary that it is the one in the container.
const contained = "XDPFAB_TEST_CONTAINED"

// refused are the calls that Docker's default profile refuses to a container without
// capabilities: those of profiles/seccomp/default.json of github.com/moby/moby that stand
// in no list of allowed ones but in those that name a capability, or in none. Calls that
// nothing in Go or xdpfab could make are left out. The profile's answer is EPERM.
var refused = []uint32{
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_USERFAULTFD,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY, unix.SYS_GET_MEMPOLICY, unix.SYS_MOVE_PAGES,
	unix.SYS_KCMP, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_FANOTIFY_INIT, unix.SYS_SETHOSTNAME,
}

// contain gives up what a container lacks: no capability can be had from here on, and the
// calls above are refused to all threads.
func contain() error {
	const load, jump, answer, errno = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K, 0x00050000 // SECCOMP_RET_ERRNO
	const allow, filterMode, allThreads = 0x7fff0000, 1, 1
	filter := []unix.SockFilter{{Code: load, K: 0}} // the number of the call
	for n, call := range refused {
		filter = append(filter, unix.SockFilter{Code: jump, Jt: uint8(len(refused) - n), K: call})
	}
	filter = append(filter, unix.SockFilter{Code: answer, K: allow}, unix.SockFilter{Code: answer, K: errno | uint32(unix.EPERM)})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // the filter takes it to all threads
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, e := unix.Syscall(unix.SYS_SECCOMP, filterMode, allThreads, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		return e
	}
	if thread != 0 {
		return fmt.Errorf("thread %d did not take the filter", thread)
	}
	return nil
}

// A process with the rights of a plain container has no AF_XDP; TransportAuto says why
// and uses UDP sockets, by which all works as ever.
func TestUDPContainer(t *testing.T) {
	if os.Getenv(contained) == "" {
		testnet.Require(t)
		pair := testnet.NewVeth(t, testnet.Options{})
		c := exec.Command("/proc/self/exe", "-test.run=^TestUDPContainer$", "-test.short", "-test.v")
		c.Env, c.Dir = append(os.Environ(), contained+"=1"), "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		var out []byte
		if err := pair.A.Do(func() (err error) {
			out, err = c.CombinedOutput()
			return err
		}); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	if err := contain(); err != nil {
		t.Fatal(err)
	}
	if _, _, e := unix.Syscall(unix.SYS_BPF, 0, 0, 0); e != unix.EPERM {
		t.Fatalf("bpf: %v, want EPERM", e)
	}
	if _, err := xdpfab.Open(ctx(t), "lo", fi.DomainAttr{}); err == nil || errors.Is(err, xdpfab.ErrBusy) {
		t.Fatalf("AF_XDP: %v, want a refusal", err)
	}
	open := func(name string, transport fi.Transport) *xdpfab.Domain {
		d, err := xdpfab.Open(ctx(t), name, fi.DomainAttr{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.CloseAll(); err != nil {
				t.Error(err)
			}
		})
		return d
	}
	server := served(t, open("lo", fi.TransportAuto))
	if i := server.Interface(); i.Transport != "udp" || i.NoXDP == "" {
		t.Errorf("%+v, want UDP sockets, and why", i)
	}
	exercise(t, open("127.0.0.2", fi.TransportUDP), server, server.Name(0))
}
