// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// asConfined, an environment variable, makes the test binary confine itself as containers
// are, and then run the program that its arguments name.
const asConfined = "XDPFAB_TEST_CONFINED"

// Confine, which TestMain calls first, makes a process that ConfinedBy started confine
// itself and run its program. In others it does nothing.
func Confine() {
	if os.Getenv(asConfined) != "" {
		os.Exit(confinedMain(os.Args[1:]))
	}
}

// confinedMain installs the profile, tries it, and becomes the program.
func confinedMain(args []string) int {
	err := os.Unsetenv(asConfined)
	if err == nil {
		err = free()
	}
	if err == nil {
		err = install(profile())
	}
	if err == nil {
		err = confined()
	}
	if err == nil {
		err = syscall.Exec(args[0], args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "confined:", err)
	return 1
}

// ThroughSelf is the path of the test binary for a program started with ConfinedBy, also
// if it runs as a user that cannot enter the folder of the binary.
const ThroughSelf = "/proc/self/fd/3"

// ConfinedBy has the test binary, an open file, run what its arguments name with the
// rights of a container, where ThroughSelf is executed.
func ConfinedBy(self *os.File) func(*exec.Cmd) {
	return func(c *exec.Cmd) {
		if c.Env == nil {
			c.Env = os.Environ()
		}
		c.Env = append(c.Env, asConfined+"=1")
		c.ExtraFiles = []*os.File{self} // descriptor 3
	}
}

// The profile has the semantics of the default one of Docker, containerd and Podman
// (moby, profiles/seccomp/default.json) for a container without capabilities: a system
// call is allowed if it is on a list, and answered with EPERM otherwise. It is written
// down here as the calls up to lastCall that are not on that list. Calls of other
// architectures are not allowed at all, which is stricter.

// lastCall is the highest number of a system call that the profile allows.
const lastCall = unix.SYS_FUTEX_REQUEUE

// denied are the calls that are not allowed, whatever their arguments; those of one
// architecture alone are in archDenied.
var denied = []uint32{
	unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_BPF, unix.SYS_CHROOT, unix.SYS_CLOCK_SETTIME, unix.SYS_DELETE_MODULE,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSPICK, unix.SYS_GET_MEMPOLICY, unix.SYS_INIT_MODULE, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER, unix.SYS_IO_URING_SETUP, unix.SYS_KCMP, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEXEC_LOAD,
	unix.SYS_KEYCTL, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES, unix.SYS_MOUNT,
	unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOVE_PAGES, unix.SYS_NFSSERVCTL, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_OPEN_TREE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIVOT_ROOT, unix.SYS_PROCESS_MADVISE,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_REBOOT, unix.SYS_REQUEST_KEY, unix.SYS_SETDOMAINNAME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETNS, unix.SYS_SETTIMEOFDAY, unix.SYS_SET_MEMPOLICY,
	unix.SYS_SET_MEMPOLICY_HOME_NODE, unix.SYS_SWAPOFF, unix.SYS_SWAPON, unix.SYS_SYSLOG, unix.SYS_UMOUNT2,
	unix.SYS_UNSHARE, unix.SYS_USERFAULTFD, unix.SYS_VHANGUP,
}

// Offsets in struct seccomp_data.
const (
	callAt, archAt, argumentAt = 0, 4, 16 // of the first argument, its lower half
)

// newNamespaces are the flags of clone that are not allowed.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// personalities that may be chosen or, with the last one, asked for.
var personalities = []uint32{0, 8, 0x20000, 0x20008, 0xffffffff}

// profile is the filter. It looks at one call after the other, and nothing that it jumps
// to is far.
func profile() (f []unix.SockFilter) {
	const load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jump := func(how uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	answer := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	refusal := func(e unix.Errno) unix.SockFilter { return answer(unix.SECCOMP_RET_ERRNO | uint32(e)) }
	allow, refuse := answer(unix.SECCOMP_RET_ALLOW), refusal(unix.EPERM)

	f = append(f, unix.SockFilter{Code: load, K: archAt}, jump(unix.BPF_JEQ, auditArch, 1, 0), refuse,
		unix.SockFilter{Code: load, K: callAt}, jump(unix.BPF_JGT, lastCall, 0, 1), refuse,
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), refusal(unix.ENOSYS)) // so that callers fall back on clone
	for _, call := range slices.Concat(denied, archDenied) {
		f = append(f, jump(unix.BPF_JEQ, call, 0, 1), refuse)
	}
	argument := unix.SockFilter{Code: load, K: argumentAt}
	f = append(f,
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4), argument, jump(unix.BPF_JSET, newNamespaces, 0, 1), refuse, allow,
		jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 4), argument, jump(unix.BPF_JEQ, unix.AF_VSOCK, 0, 1), refuse, allow,
		jump(unix.BPF_JEQ, unix.SYS_PERSONALITY, 0, uint8(2*len(personalities)+2)), argument)
	for _, p := range personalities {
		f = append(f, jump(unix.BPF_JEQ, p, 0, 1), allow)
	}
	return append(f, refuse, allow)
}

// Two calls that are harmless, and allowed to everybody without the profile.
func unshareNothing() error { return unix.Unshare(0) }
func enterNothing() error   { return unix.Setns(-1, 0) }

// free makes sure that the profile is what refuses: without it, unshare and setns get as
// far as their arguments.
func free() error {
	if err := unshareNothing(); err != nil {
		return fmt.Errorf("unshare of nothing: %w: want it to succeed without the profile", err)
	}
	if err := enterNothing(); !errors.Is(err, unix.EBADF) {
		return fmt.Errorf("setns to no file: %w: want %w without the profile", err, unix.EBADF)
	}
	return nil
}

// confined makes sure that the profile is in force.
func confined() error {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	for _, line := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"} {
		if !strings.Contains(string(status), line) {
			return fmt.Errorf("want %q in the status of the process: %s", line, status)
		}
	}
	if err := unshareNothing(); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("unshare of nothing: %w: want %w", err, unix.EPERM)
	}
	if err := enterNothing(); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("setns to no file: %w: want %w", err, unix.EPERM)
	}
	for call, want := range map[uintptr]unix.Errno{
		unix.SYS_BPF: unix.EPERM, unix.SYS_PERF_EVENT_OPEN: unix.EPERM, unix.SYS_MOUNT: unix.EPERM,
		unix.SYS_KEYCTL:      unix.EPERM,
		unix.SYS_USERFAULTFD: unix.EPERM, unix.SYS_IO_URING_SETUP: unix.EPERM, unix.SYS_PIDFD_GETFD: unix.EPERM,
		lastCall + 1000: unix.EPERM, unix.SYS_CLONE3: unix.ENOSYS,
	} {
		const wrong = ^uintptr(0)
		if _, _, got := unix.RawSyscall6(call, wrong, wrong, wrong, wrong, wrong, wrong); got != want {
			return fmt.Errorf("system call %d: %v, want %v", call, got, want)
		}
	}
	return nil
}
