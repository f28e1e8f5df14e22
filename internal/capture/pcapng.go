// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"io"
	"time"
)

// File writes packets in pcapng format, as draft-ietf-opsawg-pcapng has it: one section,
// one interface, times in nanoseconds. Each call writes one block.
type File struct {
	to    io.Writer
	block []byte // scratch
}

// The types of blocks, and the codes of options in them.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockTotals    = 5
	blockPacket    = 6

	optionProgram  = 4 // of a section
	optionName     = 2 // of an interface
	optionTimeUnit = 9
	optionFlags    = 2 // of a packet
	optionQueue    = 6
	optionReceived = 4 // of the totals
	optionDropped  = 5
)

const (
	byteOrder    = 0x1a2b3c4d
	linkEthernet = 1
)

// NewFile begins a file of the packets of an interface.
func NewFile(to io.Writer, program, ifname string, snaplen int) (*File, error) {
	le := binary.LittleEndian
	f := &File{to: to}
	f.begin(blockSection)
	f.put32(byteOrder, 1)                                  // version 1.0
	f.block = le.AppendUint64(f.block, 0xffffffffffffffff) // length of the section: until the end
	f.option(optionProgram, []byte(program))
	if err := f.end(); err != nil {
		return nil, err
	}
	f.begin(blockInterface)
	f.put32(linkEthernet, uint32(snaplen))
	f.option(optionName, []byte(ifname))
	f.option(optionTimeUnit, []byte{9}) // 10^-9 s
	return f, f.end()
}

// Packet writes a packet.
func (f *File) Packet(p *Packet) error {
	way := uint32(1) // inbound
	if p.Sent {
		way = 2
	}
	f.begin(blockPacket)
	f.put32(0, uint32(uint64(p.Time)>>32), uint32(p.Time), uint32(len(p.Data)), uint32(p.Length))
	f.pad(append(f.block, p.Data...))
	f.option(optionFlags, binary.LittleEndian.AppendUint32(nil, way))
	f.option(optionQueue, binary.LittleEndian.AppendUint32(nil, uint32(p.Queue)))
	return f.end()
}

// Totals writes how many packets came, of which some were dropped.
func (f *File) Totals(packets, dropped uint64) error {
	now := uint64(time.Now().UnixNano())
	f.begin(blockTotals)
	f.put32(0, uint32(now>>32), uint32(now))
	f.option(optionReceived, binary.LittleEndian.AppendUint64(nil, packets))
	f.option(optionDropped, binary.LittleEndian.AppendUint64(nil, dropped))
	return f.end()
}

func (f *File) begin(kind uint32) {
	f.block = f.block[:0]
	f.put32(kind, 0) // the length, which end knows
}

func (f *File) put32(words ...uint32) {
	for _, w := range words {
		f.block = binary.LittleEndian.AppendUint32(f.block, w)
	}
}

// option adds an option.
func (f *File) option(code uint16, value []byte) {
	f.block = binary.LittleEndian.AppendUint16(f.block, code)
	f.block = binary.LittleEndian.AppendUint16(f.block, uint16(len(value)))
	f.pad(append(f.block, value...))
}

// pad makes a block as long as a multiple of four.
func (f *File) pad(block []byte) { f.block = append(block, make([]byte, -len(block)&3)...) }

// end writes the block.
func (f *File) end() error {
	f.option(0, nil) // the end of the options
	n := uint32(len(f.block) + 4)
	f.put32(n)
	binary.LittleEndian.PutUint32(f.block[4:], n)
	_, err := f.to.Write(f.block)
	return err
}
