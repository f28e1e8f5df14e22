// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Main is the work of process 1: it prepares the machine, serves the host and,
// when the host has gone, switches the machine off. It does not return.
func Main() {
	of := main
	switch serves := len(os.Args) == 2 && os.Args[1] == "serve"; {
	case os.Getpid() == 1:
	case serves && inMachine():
		of = serve
	default:
		fmt.Fprintln(os.Stderr, "this is the first program of a virtual machine, not one for you to run")
		os.Exit(1)
	}
	err := of()
	if err != nil {
		// Errors go to the console, since there may be no port.
		fmt.Fprintf(os.Stderr, "\n%s%v\n", Fatal, err)
		time.Sleep(100 * time.Millisecond) // for the serial port to send it
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // QEMU runs with -no-reboot
	select {}
}

func main() error {
	var c Config
	b, err := os.ReadFile(ConfigPath)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if c.System == "" {
		if err := mounts(); err != nil {
			return err
		}
	}
	for _, m := range c.Modules {
		if err := load(m); err != nil {
			return fmt.Errorf("kernel module %s: %w", m, err)
		}
	}
	if c.System != "" {
		return become(c.System)
	}
	if err := comforts(); err != nil {
		return err
	}
	for _, name := range c.Physical {
		if err := virtualFunction(name); err != nil {
			return fmt.Errorf("a virtual function of %s: %w", name, err)
		}
	}
	return serve()
}

// serve talks to the host.
func serve() error {
	port, err := openPort()
	if err != nil {
		return err
	}
	h, err := hello()
	if err != nil {
		return err
	}
	return Serve(port, h)
}

// mounts makes the file systems that programs expect.
func mounts() error {
	for _, m := range []struct{ kind, at, options string }{
		{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"devtmpfs", "/dev", ""}, {"tmpfs", "/run", "mode=755"},
		{"tmpfs", "/tmp", "mode=1777"}, {"devpts", "/dev/pts", ""}, {"tmpfs", "/dev/shm", ""},
		{"bpf", "/sys/fs/bpf", ""},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, m.options); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mounting %s at %s: %w", m.kind, m.at, err)
		}
	}
	return nil
}

// load loads a kernel module, unless it is loaded already.
func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%w; see the kernel's messages above", err)
	}
	return nil
}

// comforts sets up the rest of what a login shell would find: a path, a home,
// busybox under the names of its programs, the loopback interface.
func comforts() error {
	for name, value := range map[string]string{
		"PATH": "/bin:/sbin:/usr/bin:/usr/sbin", "HOME": "/root", "USER": "root", "TMPDIR": "/tmp", "LANG": "C.UTF-8",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	// Programs that are in /bin already, such as the real ip, stay.
	if out, err := exec.Command("/bin/busybox", "--install", "-s", "/sbin").CombinedOutput(); err != nil {
		return fmt.Errorf("busybox: %w: %s", err, out)
	}
	if out, err := exec.Command("/bin/busybox", "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("loopback: %w: %s", err, out)
	}
	// This is the limit that sudo gives on most machines, and that BPF needs
	// before Linux 5.11.
	all := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &all); err != nil {
		return err
	}
	// The tunnel modules would put an interface into every namespace.
	err := os.WriteFile("/proc/sys/net/core/fb_tunnels_only_for_init_net", []byte("1"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return unix.Sethostname([]byte("xdpfab-vm"))
}

// virtualFunction makes a virtual function of a NIC, and waits for its interface. It has
// the carrier of the NIC, which is set up for that.
func virtualFunction(name string) error {
	device := "/sys/class/net/" + name + "/device/"
	if out, err := exec.Command("/bin/busybox", "ip", "link", "set", name, "up").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := os.WriteFile(device+"sriov_numvfs", []byte("1"), 0); err != nil {
		return err
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if found, _ := filepath.Glob(device + "virtfn0/net/*"); len(found) == 1 {
			return nil
		}
		if time.Now().After(end) {
			return errors.New("no driver has made an interface of it")
		}
	}
}

// openPort finds the port to the host.
func openPort() (*os.File, error) {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		names, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
		for _, n := range names {
			b, err := os.ReadFile(n)
			if err == nil && strings.TrimSpace(string(b)) == PortName {
				return os.OpenFile("/dev/"+filepath.Base(filepath.Dir(n)), os.O_RDWR, 0)
			}
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("no virtio-serial port %s: the kernel lacks virtio_pci or virtio_console", PortName)
		}
	}
}

func hello() (Hello, error) {
	var u unix.Utsname
	var s unix.Sysinfo_t
	if err := errors.Join(unix.Uname(&u), unix.Sysinfo(&s)); err != nil {
		return Hello{}, err
	}
	return Hello{
		Release: unix.ByteSliceToString(u.Release[:]), CPUs: runtime.NumCPU(),
		Memory: int64(s.Freeram+s.Bufferram) * int64(s.Unit),
	}, nil
}
