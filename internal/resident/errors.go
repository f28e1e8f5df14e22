// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/kernel"
)

// Errors that this package returns. They match an errno too.
var (
	// ErrConfig means that an argument, or a field of Config, has an impossible value.
	ErrConfig = errno.New("resident: bad configuration", syscall.EINVAL)
	// ErrKernel means that the kernel cannot run the program.
	ErrKernel = errno.New("resident: this kernel cannot execute requests (it takes Linux 5.18)", syscall.EOPNOTSUPP)
	// ErrFull means that there is no place for another session or region.
	ErrFull = errno.New("resident: no place left", syscall.ENOSPC)
	// ErrKeyInUse means that another region has the key.
	ErrKeyInUse = errno.New("resident: the key is in use", syscall.EEXIST)
	// ErrNoFileSystem means that a folder for the state is not of a BPF file system.
	ErrNoFileSystem = errno.New(
		"not on a BPF file system: mount one, `mount -t bpf bpf /sys/fs/bpf`, or name another folder",
		syscall.ENOTSUP)
	// ErrOwned means that another process has the folder with the state.
	ErrOwned = errno.New("another process has the folder; stop it, or name another folder", syscall.EBUSY)
	// ErrVersion means that the state in a folder is not of this version.
	ErrVersion = errno.New("which is of another version of this software than "+version+", or is no state: "+
		"run the one that made it, or end it with `xdpfab resident remove`", syscall.EPROTONOSUPPORT)
	// ErrDamaged means that the state in a folder cannot be adopted as it is.
	ErrDamaged = errno.New("resident: what is pinned there is not whole: end it with `xdpfab resident remove`",
		syscall.EUCLEAN)
)

// refused explains why the kernel did not take the program or a map.
func refused(err error) error {
	var v *ebpf.VerifierError
	switch {
	case errors.As(err, &v):
		reason := "no reason given"
		if n := len(v.Log); n > 0 {
			reason = strings.Join(v.Log[max(0, n-3):], "; ")
		}
		return fmt.Errorf("%w: the verifier says: %s: %w", ErrKernel, reason, err)
	case errors.Is(err, fs.ErrPermission):
		if kernel.Before(kernel.Resident) { // it may refuse the maps' memory first
			return fmt.Errorf("%w: %w", ErrKernel, err)
		}
		return fmt.Errorf("resident: loading the program takes CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: %w", err)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("%w: %w", ErrKernel, err)
	}
	return fmt.Errorf("resident: loading the program: %w", err)
}
