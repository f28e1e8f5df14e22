// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

// lists are the copies that the engine has of lists of extents. A guest may name one list
// in all its operations, so their number alone does not bound them.
type lists struct {
	bytes  uint64               // of the operations under way
	paid   uint64               // at most so many at a time, up to now
	afford func(bytes int) bool // nil: all
}

// listStep is how much is asked for at a time, in bytes.
const listStep = 64 << 10

// OnLists has afford asked, on the engine's thread, before the copies of lists take more
// bytes than ever before. If it says no, the operation is refused. ListLen says how much
// was given.
func (f *HostRing) OnLists(afford func(bytes int) bool) { f.lists.afford = afford }

// ListLen is what afford has given. Engine's thread.
func (f *HostRing) ListLen() int { return int(f.lists.paid) }

// mayList reports whether there may be a copy of so many bytes more: all of them are no
// more than the arena.
func (f *HostRing) mayList(bytes uint64) bool {
	l := &f.lists
	all := l.bytes + bytes
	if all > uint64(len(f.segment.arena)) {
		return false
	}
	if all > l.paid {
		more := (all - l.paid + listStep - 1) / listStep * listStep
		if l.afford != nil && !l.afford(int(more)) {
			return false
		}
		l.paid += more
	}
	return true
}
