// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/binary"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
)

// The regions of every node. Their words are of 64 bits, but for the first two.
const (
	sumRegion      = iota // only added to and read: conservation and linearizability; a datatype for each word
	registerRegion        // written, swapped, compared: linearizability; a datatype for each word
	arrayRegion           // added to in long arrays: conservation of every element
	copyRegion            // read and written by remote reads and writes: every word can be told
	fenceRegion           // a word for each fenced operation, so that a frame shows which operation it carries
	constantRegion        // readable only: must never change
	hiddenRegion          // never registered: must never change
	numRegions
)

// regionWords is the length of each region in words; the word after the last
// used one is a sentinel.
var regionWords = [numRegions]int{
	sumRegion: 3, registerRegion: 3, arrayRegion: 640, copyRegion: 640, fenceRegion: 1024, constantRegion: 64,
	hiddenRegion: 64,
}

// strideOf is how many bytes lie between the words of a region.
func strideOf(kind int) int {
	if kind <= registerRegion {
		return 16
	}
	return 8
}

// typeOf is the datatype of a word, the same on every node.
func (w *world) typeOf(kind, word int) atomic.Datatype {
	if kind <= registerRegion && w.plan.typed {
		return w.types[kind][word]
	}
	return atomic.Uint64
}

// constant is the value of the words that no operation may change.
const constant = 0x1122334455667788

// region is registered memory of one node.
type region struct {
	n      *node
	kind   int
	bytes  []byte
	memory *mr.Memory
	reg    *mr.Region
	copied *mr.Region // the same, in the table of the guest; nil for none
	gone   []span     // when its key was unknown; the last may be open
	wipes  []span     // when its memory was lost
	former []past     // memory that it had before, which no operation may change from then on
	// incarnation is that of its next registration; 0 for a new one.
	incarnation uint32
}

// past is memory that was given back, and its contents at that time.
type past struct{ bytes, held []byte }

func newRegion(n *node, kind int) *region {
	r := &region{n: n, kind: kind}
	r.wipe()
	return r
}

// key is different for every region of the world, so that a frame that reaches
// the wrong node finds nothing.
func (r *region) key() uint64 { return uint64(r.n.index+1)<<8 | uint64(r.kind) }

// wipe clears the memory, as a crash does if it belongs to the process.
func (r *region) wipe() {
	// of such a size, Go's memory is aligned to the stride
	r.bytes = make([]byte, strideOf(r.kind)*(regionWords[r.kind]+1))
	if r.kind == constantRegion || r.kind == hiddenRegion {
		for i := range regionWords[r.kind] {
			binary.LittleEndian.PutUint64(r.bytes[8*i:], constant)
		}
	}
}

// register makes the region known to the present life.
func (r *region) register() {
	if r.kind == hiddenRegion || r.reg != nil || r.attends() && r.n.guest == nil {
		return
	}
	access := mr.RemoteRead | mr.RemoteWrite
	if r.kind == constantRegion {
		access = mr.RemoteRead
	}
	key := r.key()
	var err error
	if r.memory, err = mr.Adopt(r.bytes); err != nil {
		panic(err)
	}
	o := mr.Options{Key: &key, Access: access, Length: strideOf(r.kind) * regionWords[r.kind],
		Name: regionName(r.kind), Incarnation: r.incarnation}
	if r.reg, err = r.table().Register(r.memory, o); err != nil {
		panic(err) // the key is the region's own
	}
	r.copyForGuest()
	if k := len(r.gone); k > 0 && r.gone[k-1].to == forever {
		r.gone[k-1].to = r.n.w.now
	}
}

// deregister makes the key unknown; between steps no operation is being
// executed.
func (r *region) deregister() {
	if r.reg == nil {
		return
	}
	r.closeCopy()
	if err := r.reg.Close(); err != nil {
		panic(err)
	}
	if err := r.memory.Close(); err != nil {
		panic(err)
	}
	r.reg, r.memory = nil, nil
	r.gone = append(r.gone, span{r.n.w.now, forever})
}

// renew gives the region other memory, which is zeroed.
func (r *region) renew(since int64) {
	r.former = append(r.former, past{r.bytes, bytes.Clone(r.bytes)})
	r.wipes = append(r.wipes, span{since, r.n.w.now})
	r.wipe()
}

// word returns the value of a word of the region.
func (r *region) word(i int) value {
	return decode(r.n.w.typeOf(r.kind, i), r.bytes[strideOf(r.kind)*i:])
}

func regionName(kind int) string {
	return [numRegions]string{"sums", "registers", "arrays", "copies", "fences", "constants", "hidden"}[kind]
}

// attends reports whether a region is the memory of its node's guest.
func (r *region) attends() bool { return r.n.w.plan.attends>>r.kind&1 != 0 }

// closeCopy ends what copyForGuest has begun.
func (r *region) closeCopy() {
	if r.copied == nil {
		return
	}
	if err := r.copied.Close(); err != nil {
		panic(err)
	}
	r.copied = nil
}
