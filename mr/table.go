// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest name of a region that the catalogue can carry, bytes.
const MaxName = 64

// Table is the set of regions of one domain.
type Table struct {
	index atomic.Pointer[index] // stored under mu; loaded by readers

	mu       sync.Mutex
	readers  map[*Reader]struct{}
	names    map[string]*Region
	authKeys map[string]AuthKey // all that were ever named
	named    []*Region          // in order of registration
}

// NewTable returns an empty table.
func NewTable() *Table {
	t := &Table{readers: map[*Reader]struct{}{}, names: map[string]*Region{}, authKeys: map[string]AuthKey{}}
	t.index.Store(newIndex(1))
	return t
}

// Options say how memory is registered; the zero value registers all of it, without
// rights, under a random key.
type Options struct {
	Key     *uint64 // the user's key; nil for an unguessable one
	Access  Access  // what peers may do
	Name    string  // entry in the node's catalogue, at most MaxName bytes that can be printed; empty for none
	Offset  int     // first byte of the memory that belongs to the region
	Length  int     // bytes; 0 means to the end of the memory
	Virtual bool    // peers give virtual addresses instead of offsets from 0 (FI_MR_VIRT_ADDR)
	// AuthKey is the authorization key that the session of a peer must have, at most
	// MaxAuthKey bytes; empty for none, or for that of the domain.
	AuthKey []byte
	// Address takes the place of the virtual address of the first byte, for memory of
	// which the owner is another process; 0 means the address here. It needs Virtual.
	Address uint64
	// Incarnation is the region's if it is the registration of another process, or one
	// that has outlived its process; 0 means a new one.
	Incarnation uint32
	// Withdrawing is called once, when the region begins to close, while its key is still
	// in use: closing waits for it. It may be nil.
	Withdrawing func()
	// Withdrawn is called once, when the region has been closed and no operation of peers
	// is in flight on it. It may be nil.
	Withdrawn func()
}

// Register makes memory accessible to peers. The region may overlap with others. The
// error wraps ErrKeyInUse, ErrNameInUse, ErrName, ErrAuthKey, ErrAccess, ErrSize or
// ErrClosed.
func (t *Table) Register(m *Memory, o Options) (*Region, error) {
	if err := m.errNone(); err != nil {
		return nil, err
	}
	if o.Access&^allAccess != 0 {
		return nil, failed("%w: %#x, want RemoteRead, RemoteWrite or both", ErrAccess, uint8(o.Access))
	}
	if len(o.Name) > MaxName {
		return nil, failed("%w: it has %d bytes, want at most %d", ErrName, len(o.Name), MaxName)
	}
	if !printable(o.Name) {
		return nil, failed("%w: %q: want characters that can be printed, and no others", ErrName, o.Name)
	}
	auth, err := t.AuthKey(o.AuthKey)
	if err != nil {
		return nil, err
	}
	r := &Region{table: t, auth: auth, mem: m, access: o.Access, name: o.Name, born: o.Incarnation,
		withdrawing: o.Withdrawing, withdrawn: o.Withdrawn}
	if r.born == 0 {
		r.born = newIncarnation()
	}
	if err := t.publish(r, &o); err != nil {
		return nil, err
	}
	return r, nil
}

// publish gives the region its key and its memory, and lets readers find it. The key
// comes first: Memory.Close may name a region as soon as it holds the memory.
func (t *Table) publish(r *Region, o *Options) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.index.Load()
	if o.Key == nil {
		r.key = x.unusedKey()
	} else if r.key = *o.Key; x.find(r.key) != nil {
		return failed("%w: %#x; close its region first, choose another key, or let the provider choose",
			ErrKeyInUse, r.key)
	}
	if r.name != "" && t.names[r.name] != nil {
		return failed("%w: %q; close its region first or choose another name", ErrNameInUse, r.name)
	}
	data, err := r.mem.hold(r, o.Offset, o.Length)
	if err != nil {
		return err
	}
	r.data, r.addr = data, addressOf(data)
	switch {
	case o.Virtual && o.Address != 0:
		r.base = o.Address
	case o.Virtual:
		r.base = r.addr
	}
	if r.name != "" {
		t.names[r.name] = r
		t.named = append(t.named, r)
	}
	// The region is added to the index before the index is given to the readers; either
	// store publishes it whole.
	x = x.grown()
	x.add(r)
	t.index.Store(x)
	return nil
}

// unpublish hides the region from later look-ups, and returns the readers that may have
// found it before. Calling it again changes nothing and returns the same.
func (t *Table) unpublish(r *Region) []inside {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.closed.Swap(true) {
		return r.holders
	}
	t.index.Load().remove(r)
	if r.name != "" {
		delete(t.names, r.name)
		i := slices.Index(t.named, r)
		t.named = slices.Delete(t.named, i, i+1)
	}
	for rd := range t.readers {
		if s := rd.state.Load(); s&1 != 0 {
			r.holders = append(r.holders, inside{rd, s})
		}
	}
	return r.holders
}

// newIncarnation draws a number that no other registration is likely to have.
func newIncarnation() uint32 {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
		if n := binary.LittleEndian.Uint32(b[:]); n != 0 {
			return n
		}
	}
}

// unusedKey draws a key that a peer cannot guess.
func (x *index) unusedKey() uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
		if key := binary.LittleEndian.Uint64(b[:]); x.find(key) == nil {
			return key
		}
	}
}

// All returns the registered regions, in no order.
func (t *Table) All() []*Region {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.index.Load()
	all := make([]*Region, 0, x.live)
	for i := range x.slots {
		if r := x.slots[i].Load(); r != nil && r != tombstone {
			all = append(all, r)
		}
	}
	return all
}

// Named returns the number of regions that have a name: the entries of the catalogue.
func (t *Table) Named() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.named)
}

// ByName returns the region of that name, or nil. It takes a lock that is never held for
// long. To use the region's memory, call it between Enter and Exit of a Reader.
func (t *Table) ByName(name string) *Region {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[name]
}

// At returns the i-th (from 0) of the named regions in order of registration, or nil.
// Ordinals move down when a region is closed. Otherwise it is like ByName.
func (t *Table) At(i int) *Region {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i < 0 || i >= len(t.named) {
		return nil
	}
	return t.named[i]
}

// printable reports whether a name can be shown as it is, on a terminal and in a log.
func printable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}
