// SPDX-License-Identifier: Apache-2.0

// Package memory executes request frames on registered memory: each record finds its
// region and its kernel.
//
// In the life of an operation it is where the operation happens: a request payload that
// the target has decided to run goes in, and the payload of the response comes out. The
// package knows nothing of sessions, and has no state that outlives a frame but its place
// among the readers of the table of regions.
package memory

import (
	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// kernels and access are looked up by the verb, operation and datatype bytes of a record;
// a nil kernel means that the combination is not supported.
var (
	kernels [wire.NumAtomicVerbs][atomic.NumOps][atomic.NumDatatypes]atomic.Kernel
	aligns  [atomic.NumDatatypes]int
)

func init() {
	for dt := range atomic.Datatype(atomic.NumDatatypes) {
		aligns[dt] = dt.Align()
		for op := range atomic.Op(atomic.NumOps) {
			for verb := wire.VerbAtomic; verb.Atomic(); verb++ {
				kernels[verb][op][dt] = atomic.KernelOf(FormOf(verb), op, dt)
			}
		}
	}
}

// Memory applies records to registered memory, and answers requests for entries of the
// catalogue of named regions. It belongs to one goroutine at a time.
type Memory struct {
	table  *mr.Table
	reader *mr.Reader
	inside bool // the reader is in a burst
	resp   wire.ResponseWriter
	rec    wire.Record
	last   *mr.Region // the region found last within the frame
	auth   mr.AuthKey // of the sessions whose frames come; see Present

	records wire.RecordReader // of the frame that has been checked
	more    bool              // rec is the first of them
	ops     int               // their number

	reads, writes, bytesRead, bytesWritten int // see Touched

	tallied *mr.Region // that tally is of; nil if it is empty
	tally   mr.Tally   // that the region has still to be told

	streak  uint32         // see Streak
	bad     int            // number of the last operation in the frame that failed; -1 for none
	refused wire.RefusedOp // the first of them
	notice  wire.Notice
	session waiting.Session // see Serve
	noticed bool            // see Notice

	offsets [wire.MaxOps]uint32  // of the current run
	result  []byte               // of the operation that Apply executes; nil otherwise
	operand [wire.MaxSignal]byte // of the current signal: on the stack, a kernel would have it allocated
}

// New returns the memory that consists of the regions of table. It is a reader of the
// table: close it when its caller has stopped.
func New(table *mr.Table) *Memory {
	return &Memory{table: table, reader: table.NewReader()}
}

// Present sets the authorization key of the sessions whose frames come from now on.
// Regions with another key grant them nothing.
func (m *Memory) Present(auth uint32) { m.auth = mr.AuthKey(auth) }

// Close ends the reader.
func (m *Memory) Close() { m.reader.Close() }

// Leave is called when a burst of Execute is over. Regions found in it were kept mapped,
// and closing one would have waited for this call. Entering and leaving the readers for
// each frame would cost as much as the rest of a short one.
func (m *Memory) Leave() {
	if m.inside {
		m.settleTally()
		m.inside = false
		m.reader.Exit()
	}
}

// Check checks the records of a request payload, which must stay as it is until Execute,
// and returns the features that they belong to: with FeatureNotices the last one is a
// notice. If the reason is not ok, they must not run.
func (m *Memory) Check(payload []byte, ops int) (uses wire.Features, reason wire.Reason) {
	m.records.Reset(payload, ops)
	m.ops, m.more = ops, m.records.Next(&m.rec)
	return m.records.Rest()
}

// Execute runs the records that Check has seen last, in order, and writes the response
// payload into resp. n and flags are the response's length and header flags; n == 0
// without flags means that every record succeeded and none has a result. streak is how
// many records of the session have succeeded in a row up to now. Leave must be called
// afterwards, once for any number of frames.
func (m *Memory) Execute(resp []byte, streak uint32) (n int, flags uint8) {
	m.begin(resp, streak)
	for i, more := 0, m.more; more; more = m.records.Next(&m.rec) {
		i = m.record(i)
	}
	m.streak = m.lasting(m.ops)
	return m.resp.Finish()
}

// begin prepares the execution of a frame.
func (m *Memory) begin(resp []byte, streak uint32) {
	m.enter()
	m.resp.Reset(resp, m.ops)
	m.last, m.reads, m.writes, m.bytesRead, m.bytesWritten = nil, 0, 0, 0, 0
	m.streak, m.bad, m.noticed = streak, -1, false
}

func (m *Memory) enter() {
	if !m.inside {
		m.inside, m.last = true, nil
		m.reader.Enter()
	}
}

// Touched returns how many operations of the last frame were applied whole, that returned
// what they found, and that did not, and the bytes that each kind reached. Of an array
// that takes several frames, the last part counts, and the bytes are those of each part.
func (m *Memory) Touched() (reads, writes, bytesRead, bytesWritten int) {
	return m.reads, m.writes, m.bytesRead, m.bytesWritten
}

// touched counts n operations like the current one, which were applied to so many bytes
// of the region found last, and tells its observer.
func (m *Memory) touched(n, bytes int) {
	reads, writes, bytesRead, bytesWritten := m.count(n, bytes)
	if m.tallied != m.last {
		m.settleTally()
		m.tallied = m.last
	}
	m.tally.Fetching += uint64(reads)
	m.tally.NonFetching += uint64(writes)
	m.tally.FetchingBytes += uint64(bytesRead)
	m.tally.NonFetchingBytes += uint64(bytesWritten)
	if o := m.last.Observer(); o != nil {
		o.Touched(reads, writes, bytesRead, bytesWritten)
	}
}

// settleTally tells the region what was applied to it: once for a burst that has one
// region, as what several pollers add to takes longer than all else that is counted.
func (m *Memory) settleTally() {
	if m.tallied != nil {
		m.tallied.AddTally(m.tally)
		m.tallied, m.tally = nil, mr.Tally{}
	}
}

// count counts n operations like the current one, which were applied to so many bytes.
func (m *Memory) count(n, bytes int) (reads, writes, bytesRead, bytesWritten int) {
	reads, bytesRead = n, bytes
	if !m.rec.Verb.Returns() && m.rec.Verb != wire.VerbWait {
		reads, writes, bytesRead, bytesWritten = 0, n, 0, bytes
	}
	m.reads, m.writes = m.reads+reads, m.writes+writes
	m.bytesRead, m.bytesWritten = m.bytesRead+bytesRead, m.bytesWritten+bytesWritten
	return reads, writes, bytesRead, bytesWritten
}

// applied counts the current operation, or this part of it, of so many bytes.
func (m *Memory) applied(bytes int) {
	whole := 0
	if m.rec.Total == m.rec.Count {
		whole = 1
	}
	m.touched(whole, bytes)
}

// record executes the current record, whose first operation is number i of its frame, and
// returns the number of the one after it.
func (m *Memory) record(i int) int {
	n := m.rec.Ops()
	if n > 1 && m.runAtOnce(i) {
		return i + n
	}
	for j := range n {
		m.rec.Element(j)
		if status := m.run(i + j); status != wire.StatusOK {
			m.resp.AppendStatus(i+j, status)
			m.fail(i+j, status)
		}
	}
	return i + n
}

// fail records that the current operation, number i of its frame, has failed.
func (m *Memory) fail(i int, s wire.Status) {
	if m.bad < 0 {
		m.refused.Describe(&m.rec, s)
	}
	m.bad = i
}

// Refused describes the first operation of the last frame that failed, if one did.
func (m *Memory) Refused() *wire.RefusedOp { return &m.refused }

// run executes the current operation, number i of its frame.
func (m *Memory) run(i int) wire.Status {
	switch {
	case m.rec.Verb.Atomic():
		return m.atomic(i)
	case m.rec.Verb.Transfer():
		return m.transfer(i)
	case m.rec.Verb == wire.VerbWait:
		return m.wait(i)
	case m.rec.Verb == wire.VerbNotice:
		return m.tell(i)
	}
	return m.catalogue(i)
}

// atomic applies an atomic record. Whatever can fail is checked before anything is
// changed.
func (m *Memory) atomic(i int) wire.Status {
	rec := &m.rec
	if rec.Op >= atomic.NumOps || rec.Datatype >= atomic.NumDatatypes {
		return wire.StatusUnsupported
	}
	kernel := kernels[rec.Verb][rec.Op][rec.Datatype]
	if kernel == nil {
		return wire.StatusUnsupported
	}
	target, status := m.resolve(wire.ElemSize(rec.Datatype), aligns[rec.Datatype])
	if status != wire.StatusOK {
		return status
	}
	var result []byte
	if rec.Verb.Returns() {
		if result = m.value(i, len(target)); result == nil {
			return wire.StatusBadCount
		}
	}
	kernel(target, rec.Operand, rec.Compare, result)
	m.applied(len(target))
	return wire.StatusOK
}

// resolve returns the bytes that the current record is about: elements of size bytes
// each, whose addresses have to be multiples of align.
func (m *Memory) resolve(size, align int) ([]byte, wire.Status) {
	rec := &m.rec
	switch {
	case m.find(rec.Key) == nil:
		return nil, wire.StatusNoKey
	case m.last.AuthKey() != m.auth:
		return nil, wire.StatusNoAccess
	case !m.meant():
		return nil, wire.StatusStale
	}
	each := uint64(size)
	target, fault := m.last.Resolve(rec.Offset, uint64(rec.Count)*each, uint64(rec.Total)*each, align,
		Needs(rec.Verb, rec.Op))
	return target, statusOf(fault)
}

// Needs returns the rights that a record requires, after fi_mr(3): an operation that
// returns a value reads, and any operation but a read writes.
func Needs(verb wire.Verb, op uint8) mr.Access {
	switch {
	case !verb.Returns() && verb != wire.VerbWait:
		return mr.RemoteWrite
	case op == wire.OpRead:
		return mr.RemoteRead
	}
	return mr.RemoteRead | mr.RemoteWrite
}

func statusOf(f mr.Fault) wire.Status {
	switch f {
	case mr.FaultNone:
		return wire.StatusOK
	case mr.FaultAccess:
		return wire.StatusNoAccess
	case mr.FaultAlignment:
		return wire.StatusMisaligned
	}
	return wire.StatusOutOfBounds
}

// catalogue answers a request for an entry of the catalogue.
func (m *Memory) catalogue(i int) wire.Status {
	var r *mr.Region
	if m.rec.Verb == wire.VerbLookup {
		r = m.table.ByName(string(m.rec.Name))
	} else {
		r = m.table.At(int(m.rec.Ordinal))
	}
	if r == nil {
		return wire.StatusNotFound
	}
	v := m.resp.AppendValue(i, wire.EntryLen)
	if v == nil {
		return wire.StatusBadCount
	}
	entry := wire.Entry{
		Key: r.Key(), Size: uint64(r.Len()), Base: r.Base(), Access: uint8(r.Access()),
		Datatype: wire.NoDatatype, Total: uint32(m.table.Named()),
		Incarnation: r.Incarnation(),
	}
	if r.AuthKey() != 0 {
		entry.Access |= wire.AccessKeyed
	}
	entry.SetName(r.Name())
	entry.Put(v)
	return wire.StatusOK
}
