// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// ConnectionData is the most bytes that a program can add to a request for a connection,
// and to the answer.
const ConnectionData = 56

// Connection is what one side of a connection tells the other before there is one: the
// request in a hello, the answer in a hello-ack. The zero value is none.
type Connection struct {
	Set      bool
	Endpoint uint16 // the sender's endpoint of the connection; 0 in a rejection
	Origin   uint64 // of that endpoint; 0 in a rejection
	Len      uint8  // of Data
	Data     [ConnectionData]byte
}

// connectionHead is the length of endpoint and origin, in bytes.
const connectionHead = 10

// Fill sets the program's data, of at most ConnectionData bytes.
func (c *Connection) Fill(data []byte) { c.Len = uint8(copy(c.Data[:], data)) }

// Bytes returns the program's data.
func (c *Connection) Bytes() []byte { return c.Data[:c.Len] }

// put writes the option into b and returns its length.
func (c *Connection) put(b []byte) int {
	if !c.Set {
		return 0
	}
	b[0], b[1] = optionConnection, connectionHead+c.Len
	binary.LittleEndian.PutUint16(b[2:], c.Endpoint)
	binary.LittleEndian.PutUint64(b[4:], c.Origin)
	return optionHead + connectionHead + copy(b[optionHead+connectionHead:], c.Bytes())
}

func (c *Connection) parse(value []byte) Reason {
	if len(value) < connectionHead || len(value) > connectionHead+ConnectionData {
		return ReasonBadPayload
	}
	*c = Connection{Set: true, Endpoint: binary.LittleEndian.Uint16(value),
		Origin: binary.LittleEndian.Uint64(value[2:])}
	c.Fill(value[connectionHead:])
	return ReasonOK
}
