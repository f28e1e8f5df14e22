// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Lengths of the catalogue, bytes.
const (
	EntryLen   = 104 // one entry: the result of lookup and list
	MaxNameLen = 64  // a region's name
)

// The rights that an entry's Access grants. AccessKeyed says that they need an
// authorization key, which the nodes before it did not say.
const (
	AccessRead  uint8 = 1 << 0
	AccessWrite uint8 = 1 << 1
	AccessKeyed uint8 = 1 << 2
)

// NoDatatype is the datatype hint of an entry that gives none.
const NoDatatype uint8 = 0xff

// Entry describes one named region of a node, as lookup and list return it.
type Entry struct {
	Key      uint64
	Size     uint64 // bytes
	Access   uint8  // AccessRead, AccessWrite, AccessKeyed
	Datatype uint8  // hint: what the elements are; NoDatatype when unsaid
	Total    uint32 // entries in the whole catalogue
	NameLen  uint8
	// Incarnation tells this registration from every other one, including a later one
	// with the same key. It is never 0.
	Incarnation uint32
	Name        [MaxNameLen]byte // zero beyond NameLen
	Base        uint64           // the offset that operations use for the first byte: 0 or a virtual address
}

// SetName sets the name; it reports false when the name is longer than MaxNameLen bytes.
func (e *Entry) SetName(name string) bool {
	if len(name) > MaxNameLen {
		return false
	}
	e.Name = [MaxNameLen]byte{}
	e.NameLen = uint8(copy(e.Name[:], name))
	return true
}

// NameString returns the name. It allocates.
func (e *Entry) NameString() string { return string(e.Name[:min(e.NameLen, MaxNameLen)]) }

// Put writes the entry into b, which has room for EntryLen bytes, and returns EntryLen.
func (e *Entry) Put(b []byte) int {
	b = b[:EntryLen]
	clear(b)
	le := binary.LittleEndian
	le.PutUint64(b, e.Key)
	le.PutUint64(b[8:], e.Size)
	name := e.Name[:min(e.NameLen, MaxNameLen)]
	b[16], b[17], b[18] = e.Access, uint8(len(name)), e.Datatype
	le.PutUint32(b[24:], e.Total)
	le.PutUint32(b[28:], e.Incarnation)
	copy(b[32:], name)
	le.PutUint64(b[32+MaxNameLen:], e.Base)
	return EntryLen
}

// Parse reads an entry of exactly EntryLen bytes. Rights and reserved bytes that this
// version does not know are ignored: they describe the region further, and do not change
// the meaning of the rest.
func (e *Entry) Parse(b []byte) Reason {
	if len(b) != EntryLen {
		return ReasonBadPayload
	}
	le := binary.LittleEndian
	*e = Entry{Key: le.Uint64(b), Size: le.Uint64(b[8:]), Access: b[16] & (AccessRead | AccessWrite | AccessKeyed),
		NameLen: b[17], Datatype: b[18], Total: le.Uint32(b[24:]), Incarnation: le.Uint32(b[28:]),
		Name: [MaxNameLen]byte(b[32:]), Base: le.Uint64(b[32+MaxNameLen:])}
	if e.NameLen > MaxNameLen {
		return ReasonBadName
	}
	return checkZero(e.Name[e.NameLen:])
}
