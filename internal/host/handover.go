// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// HandoverVersion is the version of what a Handover says. A process can take over from
// one of the same version only.
const HandoverVersion = 9

// Handover is what a domain leaves to the next process on its interface: the sessions
// that peers have with it, its guests, and what is resident. See Host.HandOver.
type Handover struct {
	State handover
	fds   []int
	spare []int // places of copies to come: see reserve

	budgets func(rule string) []*Budget // nil for none: see Charge
}

// handover is the text of a Handover. File descriptors are named by their places.
type handover struct {
	Version  int
	Life     uint64
	MAC      wire.MAC
	Sessions [][]engine.PairState // by queue
	Idle     []engine.PairState
	Guests   []guestState
	Kept     []keptState       `json:",omitempty"`
	Device   *port.Inheritance `json:",omitempty"` // nil for one that has nothing to leave
	Resident *residentState    `json:",omitempty"`
	Owner    []byte            // see Handover.Add
	Files    []int
}

type guestState struct {
	Info       GuestInfo
	Talk       int
	Unanswered []share.Call   `json:",omitempty"`
	Attached   *AttachedState `json:",omitempty"` // nil before the guest's first call
	Loan       *loanState     `json:",omitempty"` // of one that has borrowed a queue
}

// AttachedState is what a guest has that is attached.
type AttachedState struct {
	Sizes             share.Sizes
	Segment, Doorbell int
	Tallies           int // -1 for none
	Blocks            []share.Block
	PeersGiven        uint32
	GiveUp            time.Duration
	Features          []string `json:",omitempty"` // that were agreed on
	Ring              share.HostRingState
	In                share.ArrivalsState
	Endpoints         []endpointState
	Left              []leftState `json:",omitempty"`
	Regions           []regionState
	Passives          []passiveState `json:",omitempty"`
}

type endpointState struct {
	As        share.Endpoint
	Serve     share.Serve
	Successor bool `json:",omitempty"` // see guestEndpoint
	Spoken    bool `json:",omitempty"`

	Connection *connectionState `json:",omitempty"` // of one that is to be connected
}

type regionState struct {
	As     share.Region
	Memory int
	Kept   *keptMark `json:",omitempty"` // nil if it ends with the program
}

// On the way to another process a handover is a text in a memfd, which may be as long as
// it needs to be, and other file descriptors.

// mostFiles bounds the file descriptors of a handover that is received.
const mostFiles = 1 << 20

// Add adds what the owner of the domain leaves to the next one: a text, and file
// descriptors, which the handover copies.
func (h *Handover) Add(text []byte, fds ...int) error {
	h.State.Owner = text
	for _, fd := range fds {
		at, err := h.dup(fd)
		if err != nil {
			return fmt.Errorf("xdpfab: handover: %w", err)
		}
		h.State.Files = append(h.State.Files, at)
	}
	return nil
}

// Added returns what was added. The file descriptors stay the handover's.
func (h *Handover) Added() (text []byte, fds []int) {
	for _, at := range h.State.Files {
		if at >= 0 && at < len(h.fds) {
			fds = append(fds, h.fds[at])
		}
	}
	return h.State.Owner, fds
}

// Send sends the handover to another process, and keeps it.
func (h *Handover) Send(conn *net.UnixConn) error {
	text, err := json.Marshal(&h.State)
	if err != nil {
		return fmt.Errorf("xdpfab: handover: %w", err)
	}
	fd, err := unix.MemfdCreate("xdpfab handover", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("xdpfab: handover: memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "handover")
	defer f.Close()
	if _, err = f.Write(text); err == nil {
		_, err = conn.Write(binary.LittleEndian.AppendUint32(nil, uint32(1+len(h.fds))))
	}
	if err == nil {
		err = share.SendFiles(conn, append([]int{fd}, h.fds...))
	}
	if err != nil {
		return fmt.Errorf("xdpfab: handover: %w", err)
	}
	return nil
}

// ReceiveHandover receives what Handover.Send has sent.
func ReceiveHandover(conn *net.UnixConn) (*Handover, error) {
	h := &Handover{}
	if err := h.receive(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("xdpfab: handover: %w", err), h.Close())
	}
	return h, nil
}

func (h *Handover) receive(conn *net.UnixConn) error {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > mostFiles {
		return fmt.Errorf("%d file descriptors: want 1 to %d", n, mostFiles)
	}
	fds, err := share.ReceiveFiles(conn, int(n))
	if err != nil {
		return err
	}
	h.fds = fds[1:]
	f := os.NewFile(uintptr(fds[0]), "handover")
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := json.NewDecoder(io.NewSectionReader(f, 0, size)).Decode(&h.State); err != nil {
		return err
	}
	if h.State.Version != HandoverVersion {
		return fmt.Errorf("state of version %d: want %d", h.State.Version, HandoverVersion)
	}
	return nil
}
