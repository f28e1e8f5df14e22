// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	kvmDevice  = "/dev/kvm"
	probeLimit = 10 * time.Second
)

// Accel decides which accelerator executes a guest, and says why. For Auto that is
// KVM if a guest with this kernel answers under it within seconds: it proves nothing
// that /dev/kvm can be opened, since inside some virtual machines it never boots a
// guest. The cache remembers the answer for this host kernel, processor and QEMU.
func (c *Cache) Accel(ctx context.Context, want Accel, k *Kernel) (Accel, string, error) {
	switch want {
	case TCG:
		return TCG, "as asked", nil
	case KVM:
		if !k.Arch.Native() {
			return "", "", fmt.Errorf("%w: KVM was asked for, and the guest is %s: use -accel tcg", ErrHost,
				k.Arch.Name)
		}
		if err := openKVM(); err != nil {
			return "", "", fmt.Errorf("%w: KVM was asked for: %w; use -accel tcg", ErrHost, err)
		}
		return KVM, "as asked", nil
	case Auto, "":
	default:
		return "", "", fmt.Errorf("accelerator %q: want auto, kvm or tcg", want)
	}
	if !k.Arch.Native() {
		return TCG, "the guest is " + k.Arch.Name, nil
	}
	if err := openKVM(); err != nil {
		return TCG, err.Error(), nil
	}
	l, err := c.lock("kvm")
	if err != nil {
		return "", "", err
	}
	defer l.Close()
	path := filepath.Join(c.dir, "kvm-"+hostIdentity(k.Arch))
	if b, err := os.ReadFile(path); err == nil {
		answer, why, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
		if a := Accel(answer); a == KVM || a == TCG {
			return a, why + " (remembered in " + path + ")", nil
		}
	}
	a, why := probeKVM(ctx, k)
	if a == TCG {
		// KVM is at fault only if the same guest boots without it.
		m, err := Start(ctx, Config{Image: Image{Kernel: k}, Accel: TCG})
		if err != nil {
			return "", "", err
		}
		_ = m.Close()
	}
	if ctx.Err() != nil {
		return "", "", context.Cause(ctx)
	}
	return a, why, os.WriteFile(path, []byte(string(a)+"\n"+why+"\n"), 0o644)
}

func openKVM() error {
	f, err := os.OpenFile(kvmDevice, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// probeKVM boots a guest that has to answer.
func probeKVM(ctx context.Context, k *Kernel) (Accel, string) {
	m, err := Start(ctx, Config{Image: Image{Kernel: k}, Accel: KVM, BootLimit: probeLimit})
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return TCG, kvmDevice + " is there, but a guest does not boot under it: " + line
	}
	why := fmt.Sprintf("a guest answered after %v", m.Booted.Round(time.Millisecond))
	_ = m.Close()
	return KVM, why
}

// hostIdentity names the parts of the host that the answer depends on.
func hostIdentity(a *Arch) string {
	h := sha256.New()
	var u unix.Utsname
	if errors.Is(unix.Uname(&u), nil) {
		h.Write(u.Release[:])
		h.Write(u.Version[:])
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "model name") || strings.HasPrefix(line, "flags") {
				fmt.Fprint(h, line)
			}
			if strings.TrimSpace(line) == "" {
				break // the others are alike
			}
		}
	}
	if path, err := find(a.qemu); err == nil {
		out, _ := exec.Command(path, "--version").Output()
		h.Write(out)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
