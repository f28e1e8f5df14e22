// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"

	"github.com/xdpfab/xdpfab/mr"
)

// The regions of every node, all arrays of 64-bit words.
const (
	sumRegion      = iota // only added to and read: conservation and linearizability
	registerRegion        // written, swapped, compared: linearizability
	arrayRegion           // added to in long arrays: conservation of every element
	fenceRegion           // a word for each fenced operation, so that a frame shows which it carries
	constantRegion        // readable only: must never change
	hiddenRegion          // never registered: must never change
	numRegions
)

// regionWords is how long each is; the word after the last used one is a
// sentinel.
var regionWords = [numRegions]int{
	sumRegion: 3, registerRegion: 3, arrayRegion: 640, fenceRegion: 1024, constantRegion: 64, hiddenRegion: 64,
}

// constant is what the words that nobody may change hold.
const constant = 0x1122334455667788

// region is registered memory of one node.
type region struct {
	n      *node
	kind   int
	bytes  []byte
	memory *mr.Memory
	reg    *mr.Region
	gone   []span // when its key was unknown; the last may be open
}

func newRegion(n *node, kind int) *region {
	r := &region{n: n, kind: kind}
	r.wipe()
	return r
}

// key is different for every region of the world, so that a frame that reaches
// the wrong node finds nothing.
func (r *region) key() uint64 { return uint64(r.n.index+1)<<8 | uint64(r.kind) }

// wipe is what a crash does to memory of the process's own.
func (r *region) wipe() {
	r.bytes = make([]byte, 8*(regionWords[r.kind]+1)) // of this size, Go's memory is aligned to 8 bytes
	if r.kind == constantRegion || r.kind == hiddenRegion {
		for i := range regionWords[r.kind] {
			binary.LittleEndian.PutUint64(r.bytes[8*i:], constant)
		}
	}
}

// register makes the region known to the present life.
func (r *region) register() {
	if r.kind == hiddenRegion || r.reg != nil {
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
	r.reg, err = r.n.table.Register(r.memory, mr.Options{
		Key: &key, Access: access, Length: 8 * regionWords[r.kind], Name: regionName(r.kind),
	})
	if err != nil {
		panic(err) // the key is the region's own
	}
	if k := len(r.gone); k > 0 && r.gone[k-1].to == forever {
		r.gone[k-1].to = r.n.w.now
	}
}

// deregister makes the key unknown; between steps no operation is in flight.
func (r *region) deregister() {
	if r.reg == nil {
		return
	}
	if err := r.reg.Close(); err != nil {
		panic(err)
	}
	if err := r.memory.Close(); err != nil {
		panic(err)
	}
	r.reg, r.memory = nil, nil
	r.gone = append(r.gone, span{r.n.w.now, forever})
}

func regionName(kind int) string {
	return [numRegions]string{"sums", "registers", "arrays", "fences", "constants", "hidden"}[kind]
}
