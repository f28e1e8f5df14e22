// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/share"
)

// A handover has a copy of each file descriptor that moves, so for a moment a process has
// all of them twice. The process reserves their places before it stops anything: if it
// has too few, it refuses to hand over, and continues.

const (
	// deviceFiles is how many file descriptors the XDP program and its maps are, at most.
	deviceFiles = 16
	// guestFiles is how many a guest has apart from its regions: conversation, segment,
	// doorbell and tallies; or conversation, socket, and both of the cross ring.
	guestFiles = 4
	// OtherFiles is how many further ones a process may need while it hands over.
	OtherFiles = 64
)

// descriptors is how many file descriptors a handover has copies of at present.
func (h *Host) descriptors() int {
	n := deviceFiles + residence.Of(h.n).Files()
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for g := range h.Tenancy.guests {
		g.Mu.Lock()
		n += guestFiles + len(g.regions)
		g.Mu.Unlock()
	}
	for _, k := range h.Tenancy.Kept {
		if k.Holder.Ended {
			n++
		}
	}
	return n
}

// mayOpen returns an error unless the process may open n further file descriptors.
func mayOpen(n int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("xdpfab: handover: limit of open files: %w", err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil // reserve finds out
	}
	if want := len(open) + n + OtherFiles; uint64(want) > limit.Cur {
		return fmt.Errorf(
			"xdpfab: handover: %d file descriptors are open, and copies of %d move: want a limit of open files"+
				" of %d, and it is %d; raise it (LimitNOFILE, ulimit -n), or have programs close regions: %w",
			len(open), n, want, limit.Cur, unix.EMFILE)
	}
	return nil
}

// reserve takes the places of so many file descriptors, for copies.
func (h *Handover) reserve(n int) error {
	if n <= 0 {
		return nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	for err == nil {
		if h.spare = append(h.spare, fd); len(h.spare) == n {
			return nil
		}
		fd, err = unix.FcntlInt(uintptr(h.spare[0]), unix.F_DUPFD_CLOEXEC, 0)
	}
	return fmt.Errorf("xdpfab: handover: places for %d file descriptors: %w; raise the limit of open files "+
		"(LimitNOFILE, ulimit -n), or have programs close regions", n, err)
}

// release gives so many reserved places back, for copies that others make.
func (h *Handover) release(n int) {
	at := max(0, len(h.spare)-n)
	share.CloseAll(h.spare[at:])
	h.spare = h.spare[:at]
}

// own adds a file descriptor to the handover's, and returns its place.
func (h *Handover) own(fd int) int {
	h.fds = append(h.fds, fd)
	return len(h.fds) - 1
}

// dup is own for a copy, in one of the reserved places as long as there are some.
func (h *Handover) dup(fd int) (at int, err error) {
	n := len(h.spare)
	if n == 0 {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		return h.own(own), nil
	}
	own := h.spare[n-1]
	if err := unix.Dup3(fd, own, unix.O_CLOEXEC); err != nil {
		return -1, err
	}
	h.spare = h.spare[:n-1]
	return h.own(own), nil
}

// dupTalk is dup for a conversation, which may have ended.
func (h *Handover) dupTalk(t *share.Talk) (at int, err error) {
	bad := t.Control(func(fd int) { at, err = h.dup(fd) })
	if bad != nil {
		return -1, bad
	}
	return at, err
}

// Close frees the handover. The domains that it was opened as stay.
func (h *Handover) Close() error {
	h.release(len(h.spare))
	share.CloseAll(h.fds)
	h.fds = nil
	return nil
}
