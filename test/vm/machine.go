// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// The errors with which a machine can end.
var (
	ErrBoot   = errors.New("the guest did not boot")
	ErrPanic  = errors.New("the guest's kernel panicked")
	ErrHang   = errors.New("the guest hangs")
	ErrClosed = errors.New("the machine is off")
)

// errSpeechless is wrapped by the errors of guests that did not get as far as their first
// word, although they could.
var errSpeechless = errors.New("the guest said nothing")

// Config describes which machine to start.
type Config struct {
	Image  Image
	CPUs   int   // 0 means 2
	Memory int64 // bytes; 0 means what the image needs
	Accel  Accel // KVM or TCG; see Cache.Accel
	Append string
	// BootLimit is how long the guest may take to say hello, and Silence how long it
	// may be silent later, while QEMU has a processor; 0 means a time that suits the
	// accelerator.
	BootLimit, Silence time.Duration

	Cable *os.File // an end of NewCable; Start takes it
	MAC   string   // of the interface at the cable

	NIC      *NIC      // the machine has two; it needs Image.Drivers and Emulator
	Emulator *Emulator // nil means the host's QEMU
}

// Machine is a running guest.
type Machine struct {
	Hello  guest.Hello
	Accel  Accel
	Booted time.Duration

	dir     string
	cmd     *exec.Cmd
	port    *os.File
	console console
	qemu    console // QEMU's own complaints
	ended   chan struct{}
	silence time.Duration
	nic     *NIC // what the guest's tests are told of

	mu     sync.Mutex // guards what follows, and writing to the port
	calls  map[int]*call
	serial int
	cause  error         // why it ended
	quiet  time.Duration // for which the guest could have spoken and did not
}

// call is a request that is not yet answered.
type call struct {
	out, err io.Writer
	census   []string
	done     chan guest.Done
}

// Start boots a machine and waits until its guest answers. Close ends it; so does
// the end of this process, however it ends.
func Start(ctx context.Context, c Config) (_ *Machine, err error) {
	if c.Cable != nil {
		defer c.Cable.Close()
	}
	if c.CPUs == 0 {
		c.CPUs = 2
	}
	if c.BootLimit == 0 {
		c.BootLimit = bootLimit(c.Accel)
		if !c.Image.Kernel.Arch.Native() {
			c.BootLimit *= 2 // 46 s on a busy host, 3 minutes on a very busy one
		}
	}
	if c.Silence == 0 {
		c.Silence = 60 * time.Second
	}
	if c.Emulator == nil {
		program, err := find(c.Image.Kernel.Arch.qemu)
		if err != nil {
			return nil, err
		}
		c.Emulator = &Emulator{program: program}
	}
	m := &Machine{Accel: c.Accel, ended: make(chan struct{}), silence: c.Silence, nic: c.NIC, calls: map[int]*call{}}
	dir, err := os.MkdirTemp("", "xdpfab-vm-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	m.dir = dir
	initrd, err := c.initramfs(dir)
	if err != nil {
		return nil, err
	}
	hello, err := m.launch(c, initrd)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	limit := time.NewTimer(c.BootLimit)
	defer limit.Stop()
	select {
	case m.Hello = <-hello:
		m.Booted = time.Since(begin)
		// QEMU has read the file, which is removed now so that not even a killed
		// process leaves it behind. If this fails, wait tries again.
		_ = os.RemoveAll(dir)
		return m, nil
	case <-m.ended:
	case <-limit.C:
		m.end(fmt.Errorf("%w within %v (%s)", ErrBoot, c.BootLimit, c.Accel))
	case <-ctx.Done():
		m.end(context.Cause(ctx))
	}
	<-m.ended
	err = m.explained()
	if ctx.Err() == nil && !errors.Is(err, ErrMemory) {
		err = fmt.Errorf("%w: %w", errSpeechless, err)
	}
	return nil, err
}

// initramfs builds the image and chooses the memory for it.
func (c *Config) initramfs(dir string) (path string, err error) {
	init := c.Image.Init
	if init == "" {
		init = filepath.Join(dir, "vminit")
		if err := goBuild(c.Image.Kernel.Arch, init, "./test/vm/cmd/vminit"); err != nil {
			return "", err
		}
	}
	path = filepath.Join(dir, "initramfs")
	c.Image.physical = c.NIC.physical()
	size, err := c.Image.Build(path, init)
	if err != nil {
		return "", err
	}
	return path, c.fit(size)
}

// launch starts QEMU.
func (m *Machine) launch(c Config, initrd string) (<-chan guest.Hello, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	m.port = os.NewFile(uintptr(fds[0]), "port")
	theirs := os.NewFile(uintptr(fds[1]), "port")
	defer theirs.Close()
	m.cmd = c.Emulator.command(c.arguments(c.Accel, initrd)...)
	m.cmd.Stdout, m.cmd.Stderr = &m.console, &m.qemu
	m.cmd.ExtraFiles = []*os.File{theirs}
	if c.Cable != nil {
		m.cmd.ExtraFiles = append(m.cmd.ExtraFiles, c.Cable)
	}
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.NIC != nil {
		if err := c.NIC.enclose(m.cmd); err != nil {
			return nil, errors.Join(err, m.port.Close())
		}
	}
	started := make(chan error, 1)
	go func() {
		// The death signal is bound to the thread that starts the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := m.cmd.Start()
		started <- err
		if err == nil {
			m.wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", c.Emulator.program, err), m.port.Close())
	}
	hello := make(chan guest.Hello, 1)
	go m.listen(hello)
	return hello, nil
}

// wait waits for QEMU's end and tells all callers.
func (m *Machine) wait() {
	err := m.cmd.Wait()
	m.mu.Lock()
	if m.cause == nil {
		m.cause = fmt.Errorf("%w: QEMU ended: %v", ErrClosed, err)
	}
	m.mu.Unlock()
	_ = m.port.Close()
	_ = os.RemoveAll(m.dir)
	close(m.ended)
}

// end switches the machine off for a reason, unless there was one before.
func (m *Machine) end(cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cause == nil {
		m.cause = cause
	}
	_ = m.cmd.Process.Kill()
}

// Close switches the machine off.
func (m *Machine) Close() error {
	m.end(ErrClosed)
	<-m.ended
	return nil
}

// listen takes replies until the port ends.
func (m *Machine) listen(hello chan<- guest.Hello) {
	d := json.NewDecoder(m.port)
	for {
		var r guest.Reply
		if err := d.Decode(&r); err != nil {
			return // wait says why
		}
		m.mu.Lock()
		m.quiet = 0
		c := m.calls[r.ID]
		m.mu.Unlock()
		switch {
		case r.Hello != nil:
			go m.watch()
			hello <- *r.Hello
		case c != nil:
			c.take(&r)
		}
	}
}

func (c *call) take(r *guest.Reply) {
	if len(r.Out) > 0 && c.out != nil {
		_, _ = c.out.Write(r.Out)
	}
	if len(r.Err) > 0 && c.err != nil {
		_, _ = c.err.Write(r.Err)
	}
	c.census = append(c.census, r.Census...)
	if r.Done != nil {
		c.done <- *r.Done
	}
}

// CPU is the processor time that QEMU has taken.
func (m *Machine) CPU() time.Duration {
	select {
	case <-m.ended:
		return m.cmd.ProcessState.UserTime() + m.cmd.ProcessState.SystemTime()
	default:
	}
	// The clock of all threads of another process; see clock_getcpuclockid(3).
	clock := int32(^m.cmd.Process.Pid<<3 | 2)
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts) // it fails if QEMU has just ended: 0
	return time.Duration(ts.Nano())
}

// Console returns the output of the guest's kernel on its serial port so far.
func (m *Machine) Console() string { return m.console.String() }

// Warnings returns the lines of the console that no healthy kernel prints.
func (m *Machine) Warnings() []string { return warnings(m.Console()) }

// explained returns why the machine ended, with the messages of the guest and of
// QEMU.
func (m *Machine) explained() error {
	m.mu.Lock()
	err := m.cause
	m.mu.Unlock()
	log := m.Console()
	if line := firstMatch(log, outOfMemory); line != "" {
		err = fmt.Errorf("%w: in the guest: %s: raise -memory", ErrMemory, line)
	} else if line := givenUp(log); line != "" {
		err = fmt.Errorf("%w: %s", ErrBoot, line)
	} else if strings.Contains(log, "Kernel panic") {
		err = fmt.Errorf("%w: %s", ErrPanic, strings.Join(warnings(log), "; "))
	}
	if said := strings.TrimSpace(m.qemu.String()); said != "" && errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w: %s", ErrBoot, said)
	}
	if log != "" {
		return fmt.Errorf("%w; the end of its console:\n%s", err, tail(log, 25))
	}
	return err
}

// NewCable is an Ethernet cable for two machines, as Config.Cable takes its ends:
// the interface of each receives what the other's sends. It uses no network of the
// host, needs no port and no privilege, and ends with the machines.
func NewCable() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "cable"), os.NewFile(uintptr(fds[1]), "cable"), nil
}
