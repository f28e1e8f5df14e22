// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// Kind describes where the bytes of a Memory come from.
type Kind uint8

// The sources of memory.
const (
	KindAnonymous Kind = iota // Alloc
	KindMemfd                 // Memfd: can be shared with other processes
	KindFile                  // File: survives the process
	KindAdopted               // Adopt: memory of the Go heap
	KindResident              // Resident: in a BPF map, where the XDP program reaches it
)

// String returns the name of the source.
func (k Kind) String() string {
	if names := [...]string{"anonymous", "memfd", "file", "adopted", "resident"}; int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Pages describes which sort of pages backs a Memory.
type Pages uint8

// The sorts of pages.
const (
	PagesSmall       Pages = iota // the base pages of the machine
	PagesTransparent              // the kernel was asked for transparent huge pages and gives them as it can
	PagesHuge                     // huge pages from the reserved pool
)

// String returns the name of the sort.
func (p Pages) String() string {
	if names := [...]string{"small", "transparent huge", "huge"}; int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("Pages(%d)", uint8(p))
}

// Memory is a stretch of bytes that regions can be registered over. All methods may be
// called by any goroutine.
type Memory struct {
	kind  Kind
	pages Pages
	fd    int          // -1 for none; never changes
	free  func() error // gives the bytes back; nil for adopted memory
	sync  func() error // writes the bytes to the device; nil when there is none

	mu      sync.Mutex
	data    []byte               // nil once closed
	regions map[*Region]struct{} // registered and not yet quiescent
	pinner  runtime.Pinner
}

// Adopt makes ordinary Go memory registrable. It is pinned while regions are registered
// over it. The caller keeps the slice and may use it, but must use sync/atomic where
// peers write. b must not be empty; the error wraps ErrSize. Behind a daemon, the memory
// has the limits of that of [Alloc].
func Adopt(b []byte) (*Memory, error) {
	if len(b) == 0 {
		return nil, failed("%w: an empty slice; want at least one byte", ErrSize)
	}
	return &Memory{kind: KindAdopted, fd: -1, data: b}, nil
}

// Kind returns the source of the bytes.
func (m *Memory) Kind() Kind { return m.kind }

// Pages returns the sort of pages behind the bytes.
func (m *Memory) Pages() Pages { return m.pages }

// FD returns the file descriptor behind the memory, by which another process can map it;
// -1 for none. It belongs to the Memory and is closed with it.
func (m *Memory) FD() int {
	if m == nil {
		return -1
	}
	return m.fd
}

// Bytes returns the memory; nil once it is closed. After Close the slice of an earlier
// call must not be touched.
func (m *Memory) Bytes() []byte {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data
}

// Sync writes the bytes of a file-backed Memory to the device and waits for it (msync(2),
// MS_SYNC). For other kinds it does nothing. The error wraps ErrClosed or the system's
// error.
func (m *Memory) Sync() error {
	if err := m.errNone(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.data == nil {
		return failed("%w: want one that is open", ErrClosed)
	}
	if m.sync == nil {
		return nil
	}
	return m.sync()
}

// maxNames is how many holders an error names.
const maxNames = 8

// Close gives the memory back. It refuses while regions are registered over it, also
// while one of them is still waiting for operations in flight: the error wraps ErrInUse
// and names them. Closing again does nothing.
func (m *Memory) Close() error {
	if err := m.errNone(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.regions) > 0 {
		var names []string
		for r := range m.regions {
			if names = append(names, r.String()); len(names) == maxNames {
				break
			}
		}
		return failed("%w: %d of them (such as %s); close them first", ErrInUse, len(m.regions),
			strings.Join(names, "; "))
	}
	if m.data == nil {
		return nil
	}
	m.data = nil
	if m.free == nil {
		return nil
	}
	return m.free()
}

// pinned keeps every pinned Memory reachable. The runtime panics when a Pinner is
// collected before Unpin; a program that forgets a Table should leak memory, but not
// crash.
var pinned sync.Map // *Memory -> struct{}

// hold records that r is about to use part of the memory, and returns that part.
func (m *Memory) hold(r *Region, offset, length int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.data == nil {
		return nil, failed("%w; register memory before closing it", ErrClosed)
	}
	if length == 0 && offset >= 0 && offset < len(m.data) {
		length = len(m.data) - offset
	}
	if offset < 0 || length <= 0 || offset > len(m.data)-length {
		return nil, failed("%w: offset %d and length %d bytes of a memory of %d bytes; want at least one byte, "+
			"and all of them inside", ErrSize, offset, length, len(m.data))
	}
	if m.kind == KindAdopted && len(m.regions) == 0 {
		m.pinner.Pin(&m.data[0])
		pinned.Store(m, struct{}{})
	}
	if m.regions == nil {
		m.regions = map[*Region]struct{}{}
	}
	m.regions[r] = struct{}{}
	return m.data[offset : offset+length : offset+length], nil
}

// release undoes hold.
func (m *Memory) release(r *Region) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, held := m.regions[r]; !held {
		return // closed before
	}
	delete(m.regions, r)
	if m.kind == KindAdopted && len(m.regions) == 0 {
		m.pinner.Unpin()
		pinned.Delete(m)
	}
}

// Resident wraps memory in a BPF map, on which the XDP program of a domain executes
// operations by itself. b is the whole map as it is mapped, and free, which Close calls,
// unmaps it. Programs get such memory from Domain.NewResidentMemory of package xdpfab,
// and from nowhere else. The error wraps ErrSize.
func Resident(b []byte, free func() error) (*Memory, error) {
	if len(b) == 0 {
		return nil, failed("%w: an empty slice; want at least one byte", ErrSize)
	}
	return &Memory{kind: KindResident, fd: -1, data: b, free: free}, nil
}
