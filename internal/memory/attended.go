// SPDX-License-Identifier: Apache-2.0

package memory

import "github.com/xdpfab/xdpfab/internal/wire"

// Operations on memory that only another program has mapped are executed there: a
// daemon's Memory hands frames over and answers them with what that program says, and
// that program's Memory executes them one by one.

// Foreign reports whether the frame that Check has seen last has an operation on a region
// whose key is not here, and an answer that fits into so many bytes, whatever fails.
// Otherwise it is executed here. Leave must be called afterwards, as after Execute.
func (m *Memory) Foreign(room int) bool {
	m.enter()
	m.last = nil
	records, rec := m.records, m.rec
	var answer wire.Answerable
	foreign := false
	for more := m.more; more; more = records.Next(&rec) {
		foreign = foreign || rec.Verb.Array() && m.find(rec.Key) == nil
		for range rec.Ops() {
			answer.Add(rec.Verb.ResultLen(rec.Datatype, rec.Count))
		}
	}
	return foreign && answer.Fits(room)
}

// Answer is Execute for a frame whose operations in memory another program has executed.
// Operations without memory are executed here, and now.
func (m *Memory) Answer(resp []byte, streak uint32, said wire.Answers) (n int, flags uint8) {
	m.begin(resp, streak)
	i := 0
	for more := m.more; more; more = m.records.Next(&m.rec) {
		for range m.rec.Ops() {
			if status := m.take(i, said); status != wire.StatusOK {
				m.resp.AppendStatus(i, status)
				m.fail(i, status)
			}
			i++
		}
	}
	m.streak = m.lasting(m.ops)
	return m.resp.Finish()
}

// take takes the answer to the current operation, number i of its frame.
func (m *Memory) take(i int, said wire.Answers) wire.Status {
	rec := &m.rec
	if rec.Verb == wire.VerbWait {
		return wire.StatusUnsupported
	}
	if !rec.Verb.Array() {
		return m.run(i)
	}
	status, result := said.Next()
	if status != wire.StatusOK {
		return status
	}
	size := wire.ElemSize(rec.Datatype)
	if rec.Verb.Returns() {
		copy(m.resp.AppendKnown(len(result)), result)
	}
	whole := 0
	if rec.Total == rec.Count {
		whole = 1
	}
	m.count(whole, int(rec.Count)*size)
	return status
}

// Apply executes one operation for a session with an authorization key, and puts its
// result into result, which has the length that the operation says. Leave must be called
// afterwards, once for any number of operations.
func (m *Memory) Apply(rec *wire.Record, auth uint32, result []byte) wire.Status {
	m.enter()
	m.Present(auth)
	m.rec, m.result = *rec, result
	defer func() { m.result = nil }()
	if rec.Verb.Atomic() {
		return m.atomic(0)
	}
	if rec.Verb.Transfer() && rec.Verb != wire.VerbSignal { // whose word may be in other memory
		return m.transfer(0)
	}
	return wire.StatusUnsupported
}

// value returns the place for the result of the current operation, number i of its frame,
// or nil if it has no room.
func (m *Memory) value(i, n int) []byte {
	if m.result == nil { // nearly always
		return m.resp.AppendValue(i, n)
	}
	return m.result[:n:n]
}
