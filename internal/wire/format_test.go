// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
)

// between returns the text of docs/wire-format.md after some words, up to some others
// or to its end.
func between(t *testing.T, words, end string) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/wire-format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), words)
	if !found {
		t.Fatalf("the document does not have the words %q", words)
	}
	if end != "" {
		rest, _, _ = strings.Cut(rest, end)
	}
	return rest
}

// table returns the rows, as cells, of the first table of docs/wire-format.md after the
// given words.
func table(t *testing.T, behind string) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(between(t, behind, "")) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("no table after %q", behind)
	}
	return rows[2:] // without the head
}

// fieldName returns the name that a cell begins with; the rest of the cell
// explains it.
func fieldName(cell string) string {
	name, _, _ := strings.Cut(cell, ":")
	name, _, _ = strings.Cut(name, ",")
	return name
}

// number reads a cell.
func number(t *testing.T, cell string, base int) int {
	t.Helper()
	n, err := strconv.ParseUint(cell, base, 32)
	if err != nil {
		t.Fatalf("cell %q: %v", cell, err)
	}
	return int(n)
}

// setter encodes a message in which one field has a value that no other field has.
type setter struct {
	value  uint64 // of the field; 0 for text
	text   string
	encode func() []byte
}

// layout compares a table of offsets with an encoder: rows begin with offset and size,
// and have the field's name in the given column. Each field is set by itself: its bytes
// change as the table says, and no others.
func layout(t *testing.T, rows [][]string, column int, zero []byte, fields map[string]setter) {
	t.Helper()
	end := 0
	for _, row := range rows {
		name, at := fieldName(row[column]), number(t, row[0], 10)
		if at != end {
			t.Errorf("%s is at %d, but the field before it ends at %d", name, at, end)
		}
		if row[1] == "" { // what follows
			continue
		}
		size := number(t, row[1], 10)
		end = at + size
		if name == "0" {
			if checkZero(zero[at:end]) != ReasonOK {
				t.Errorf("bytes %d to %d are % x, want zeros", at, end, zero[at:end])
			}
			continue
		}
		f, ok := fields[name]
		if !ok {
			t.Errorf("the code has no field %q", name)
			continue
		}
		delete(fields, name)
		want := bytes.Clone(zero)
		copy(want[at:end], make([]byte, size))
		if copy(want[at:end], f.text); f.text == "" {
			var v [8]byte
			binary.LittleEndian.PutUint64(v[:], f.value)
			copy(want[at:end], v[:])
			if checkZero(v[min(size, 8):]) != ReasonOK {
				t.Errorf("%s: %#x does not fit the %d bytes that the table gives it", name, f.value, size)
			}
		}
		if got := f.encode(); !bytes.Equal(got, want) {
			t.Errorf("%s = %#x%s: encoded as\n% x, the table says\n% x", name, f.value, f.text, got, want)
		}
	}
	for name := range fields {
		t.Errorf("the table has no field %q", name)
	}
	if end != len(zero) {
		t.Errorf("the table ends at %d, the code at %d", end, len(zero))
	}
}

// Values that show where they lie, by the size of the field.
const (
	v8  = 0xa1
	v16 = 0xb2b1
	v32 = 0xc4c3c2c1
	v64 = 0xd8d7d6d5d4d3d2d1
)

// TestDocOfHeader compares the table of the header with the code.
func TestDocOfHeader(t *testing.T) {
	head := func(h Header) setter {
		return setter{encode: func() []byte {
			b := make([]byte, HeaderLen)
			h.Put(b)
			return b
		}}
	}
	with := func(v uint64, h Header) setter { s := head(h); s.value = v; return s }
	zero := head(Header{}).encode()
	sealed := setter{encode: func() []byte { b := make([]byte, MinFrame); copy(b, zero); Seal(b, HeaderLen); return b[:HeaderLen] }}
	sealed.value = uint64(binary.LittleEndian.Uint32(sealed.encode()[crcOff:]))
	layout(t, table(t, "## Header"), 2, zero, map[string]setter{
		"version": with(0x1f, Header{Type: 15}), "flags": with(v8, Header{Flags: v8}),
		"session": with(v32, Header{Session: v32}), "epoch": with(v32, Header{Epoch: v32}), "psn": with(v32, Header{PSN: v32}),
		"ack": with(v32, Header{Ack: v32}), "sack": with(v64, Header{Sack: v64}), "credit": with(v16, Header{Credit: v16}),
		"ops": with(v8, Header{Ops: v8}), "lane": with(v8, Header{Lane: v8}), "checksum": sealed,
	})
}

// put returns the setter of a message.
func put(v uint64, m message, size int) setter {
	return setter{value: v, encode: func() []byte { b := make([]byte, size+HelloRoom); m.Put(b); return b[:size] }}
}

// TestDocOfHello compares the table of hello and hello-ack with the code.
func TestDocOfHello(t *testing.T) {
	rows := table(t, "## Hello and hello-ack")
	text := "sixteen letters!"
	cookie := Cookie([]byte(text))
	hello := func(v uint64, m HelloMsg) setter { return put(v, &m, HelloLen) }
	withCookie := hello(0, HelloMsg{Cookie: cookie})
	withCookie.text = text
	layout(t, rows, 2, make([]byte, HelloLen), map[string]setter{
		"nonce": hello(v64, HelloMsg{Nonce: v64}), "session": hello(v32, HelloMsg{Session: v32}), "endpoint": hello(v16, HelloMsg{Endpoint: v16}),
		"largest frame": hello(v16, HelloMsg{MaxFrame: v16}), "window": hello(v16, HelloMsg{Window: v16}), "keep": hello(v16, HelloMsg{Keep: v16}),
		"features": hello(v32, HelloMsg{Features: v32}), "cookie": withCookie,
		"former session": hello(v32, HelloMsg{Resume: Resume{Session: v32}}), "former epoch": hello(v32, HelloMsg{Resume: Resume{Epoch: v32}}),
		"former psn": hello(v32, HelloMsg{Resume: Resume{PSN: v32}}),
		"origin":     hello(v64, HelloMsg{Origin: v64}), "serial": hello(v32, HelloMsg{Serial: v32}),
	})
	ack := func(v uint64, m HelloAckMsg) setter { return put(v, &m, HelloLen) }
	withCookie = ack(0, HelloAckMsg{Cookie: cookie})
	withCookie.text = text
	layout(t, rows, 3, make([]byte, HelloLen), map[string]setter{
		"nonce": ack(v64, HelloAckMsg{Nonce: v64}), "session": ack(v32, HelloAckMsg{Session: v32}), "status": ack(v8, HelloAckMsg{Status: v8}),
		"largest frame": ack(v16, HelloAckMsg{MaxFrame: v16}), "window": ack(v16, HelloAckMsg{Window: v16}),
		"features": ack(v32, HelloAckMsg{Features: v32}), "cookie": withCookie,
		"former session": ack(v32, HelloAckMsg{Resume: Resume{Session: v32}}), "former epoch": ack(v32, HelloAckMsg{Resume: Resume{Epoch: v32}}),
		"former psn": ack(v32, HelloAckMsg{Resume: Resume{PSN: v32}}),
		"life":       ack(v64, HelloAckMsg{Life: v64}), "lost": ack(1, HelloAckMsg{Lost: true}),
	})
}

// TestDocOfReset compares the table of the reset with the code.
func TestDocOfReset(t *testing.T) {
	layout(t, table(t, "## Reset"), 2, make([]byte, ResetLen), map[string]setter{
		"session": put(v32, &ResetMsg{Session: v32}, ResetLen), "psn": put(v32, &ResetMsg{PSN: v32}, ResetLen),
		"reason": put(v8, &ResetMsg{Reason: v8}, ResetLen),
	})
}

// TestDocOfEntry compares the table of the catalogue entry with the code. Its name has a
// variable length.
func TestDocOfEntry(t *testing.T) {
	entry := func(v uint64, e Entry) setter { e.NameLen = MaxNameLen; return put(v, &e, EntryLen) }
	text := strings.Repeat("sixty-four bytes", 4)
	named := entry(0, Entry{Name: [MaxNameLen]byte([]byte(text))})
	named.text = text
	zero := entry(0, Entry{}).encode()
	layout(t, table(t, "Lookup: verb"), 2, zero, map[string]setter{
		"key": entry(v64, Entry{Key: v64}), "length": entry(v64, Entry{Size: v64}), "access": entry(v8, Entry{Access: v8}),
		"length of the name": put(5, &Entry{NameLen: 5}, EntryLen), "datatype": entry(v8, Entry{Datatype: v8}), "entries": entry(v32, Entry{Total: v32}),
		"incarnation": entry(v32, Entry{Incarnation: v32}), "name": named, "base": entry(v64, Entry{Base: v64}),
	})
}

// TestDocOfRecords builds records field by field as the tables say, and compares with the
// encoder.
func TestDocOfRecords(t *testing.T) {
	rows := table(t, "Atomic verbs:")
	flag := func(field string) byte {
		i := slices.IndexFunc(rows, func(row []string) bool { return fieldName(row[1]) == field })
		m := regexp.MustCompile(`flag bit (\d)`).FindStringSubmatch(rows[i][2])
		return 1 << number(t, m[1], 10)
	}
	operand, compare := pattern(3*8), bytes.Repeat([]byte{0xcc}, 3*8)
	for mask := range 1 << 6 {
		on := func(bit int) bool { return mask>>bit&1 != 0 }
		rec := Record{Verb: VerbFetch, Op: opSum, Datatype: dtUint64, Key: v64, Offset: v32, Count: 1, Operand: operand[:8]}
		fields := map[string][]byte{"verb": {2}, "operation": {opSum}, "datatype": {dtUint64}, "key": le(v64, 8), "offset": le(v32, 4)}
		flags := flag("key")
		if on(0) {
			rec.Incarnation, fields["incarnation"], flags = v32, le(v32, 4), flags|flag("incarnation")
		}
		if on(1) {
			rec.Offset, fields["offset"], flags = v64, le(v64, 8), flags|flag("offset")
		}
		if on(2) {
			rec.Count, rec.Operand, fields["count"], flags = 3, operand, le(3, 4), flags|flag("count")
		}
		if rec.Total = rec.Count; on(3) {
			rec.Total, fields["total"], flags = v16, le(v16, 4), flags|flag("total")
		}
		if fields["operand"] = rec.Operand; on(4) {
			rec.Op, rec.Operand, fields["operation"], fields["operand"] = OpRead, nil, []byte{OpRead}, nil
		}
		if on(5) {
			rec.Verb, rec.Compare, fields["verb"] = VerbCompare, compare[:8*rec.Count], []byte{3}
			fields["compare"] = rec.Compare
		}
		fields["flags"] = []byte{flags}
		var want []byte
		for _, row := range rows {
			v := fields[fieldName(row[1])]
			if size, err := strconv.Atoi(row[0]); err == nil && len(v) != 0 && len(v) != size {
				t.Fatalf("%s has %d bytes, the table says %d", row[1], len(v), size)
			}
			want = append(want, v...)
		}
		var w RecordWriter
		b := make([]byte, 256)
		w.Reset(b, 256)
		if !w.Append(&rec) || !bytes.Equal(b[:w.Len()], want) {
			t.Fatalf("%+v: encoded as\n% x, the table says\n% x", rec, b[:w.Len()], want)
		}
	}
}

// le returns n bytes of v.
func le(v uint64, n int) []byte { return binary.LittleEndian.AppendUint64(nil, v)[:n] }

// named checks that a table has the numbers from first to last, with the names that the
// code has for them. Reserved numbers have no name.
func named(t *testing.T, behind string, first, last int, name func(int) string) {
	t.Helper()
	for _, row := range table(t, behind) {
		if strings.HasPrefix(row[1], "reserved") {
			continue
		}
		if n := number(t, row[0], 10); n != first || name(n) != row[1] {
			t.Errorf("behind %q: number %d is %q, want %d and %q", behind, n, row[1], first, name(first))
		}
		first++
	}
	if first != last+1 {
		t.Errorf("behind %q: the numbers end at %d, want %d", behind, first-1, last)
	}
}

// TestDocOfSessionID compares the fields of a session id with the code.
func TestDocOfSessionID(t *testing.T) {
	at, got := 32, SessionID(v32)
	fields := map[string]uint32{"lane": uint32(got.Lane()), "queue": uint32(got.Queue()), "index": uint32(got.Index()), "tag": uint32(got.Tag())}
	text := strings.NewReplacer(" ", "", "`", "").Replace(between(t, "A session id is ", ","))
	for field := range strings.SplitSeq(text, "|") {
		name, width, _ := strings.Cut(field, ":")
		n := number(t, width, 10)
		at -= n
		if want := v32 >> at & (1<<n - 1); fields[name] != uint32(want) {
			t.Errorf("%s of %#x is %#x, the document says %#x", name, got, fields[name], want)
		}
	}
	if at != 0 {
		t.Errorf("%d bits have no name", at)
	}
}

// TestDocOfNumbers compares the numbers of types, verbs, features, datatypes and
// operations with the code.
func TestDocOfNumbers(t *testing.T) {
	named(t, "In a hello, the id is the lane alone.", 1, int(Tickets), func(n int) string { return Type(n).String() })
	named(t, "| lost: 1 if the answers", 0, int(NumHelloStatuses)-1, func(n int) string { return HelloStatus(n).String() })
	named(t, "| 8 | 4 | reason |", 1, int(numResetReasons)-1, func(n int) string { return ResetReason(n).String() })
	named(t, "With flag STATUS", 1, int(NumStatuses)-1, func(n int) string { return Status(n).String() })
	verbs := map[string]Verb{"atomic": VerbAtomic, "fetch atomic": VerbFetch, "compare atomic": VerbCompare, "waiting compare": VerbWait, "read": VerbRead, "write": VerbWrite, "write with a signal": VerbSignal, "send": VerbSend, "tagged send": VerbTagged, "part": VerbPart, "call": VerbCall,
		"tagged atomic": VerbTaggedAtomic, "tagged fetch": VerbTaggedFetch, "tagged compare": VerbTaggedCompare, "lookup": VerbLookup, "list": VerbList, "notice": VerbNotice}
	for _, row := range table(t, "The first byte is the verb.") {
		if row[1] == "" {
			continue
		}
		if n := number(t, row[0], 16); verbs[row[1]] != Verb(n) {
			t.Errorf("verb %q is %#x, the table says %#x", row[1], verbs[row[1]], n)
		}
		delete(verbs, row[1])
	}
	if len(verbs) > 0 {
		t.Errorf("not in the table: %v", verbs)
	}
	for name, bit := range map[string]Features{"memory": FeatureMemory, "messages": FeatureMessages, "unordered": FeatureUnordered, "notices": FeatureNotices,
		"hello options": FeatureOptions, "tagged atomics": FeatureTaggedAtomics, "more": FeatureMore} {
		if !slices.ContainsFunc(table(t, "## Room"), func(row []string) bool { return row[1] == name && row[0] == strconv.Itoa(bitOf(bit)) }) {
			t.Errorf("feature %s is bit %d, the table says something else", name, bitOf(bit))
		}
	}
	for _, row := range table(t, "or its virtual address |") {
		for i := 0; i < len(row); i += 2 {
			n, name := number(t, row[i], 10), atomic.Datatype(number(t, row[i], 10)).String()
			if i >= 4 {
				name = atomic.Op(n).String()
			}
			if name != row[i+1] {
				t.Errorf("number %d is %q, the table says %q", n, name, row[i+1])
			}
		}
	}
	own := atomic.SumAtMost
	for _, row := range table(t, "*t* is the element") {
		if op := atomic.Op(number(t, row[0], 10)); op != own || op.String() != row[1] {
			t.Errorf("operation %d is %v, the table says %q at %d", own, own, row[1], op)
		}
		for i, verb := range []Verb{VerbAtomic, VerbFetch, VerbCompare} {
			plain, tagged := fmt.Sprintf("%02x", int(verb)), fmt.Sprintf("%02x", int(VerbTaggedAtomic)+i)
			if valid := atomic.Valid(atomic.Func(i), own, atomic.Int128); valid != strings.Contains(row[2], plain) ||
				valid != strings.Contains(row[2], tagged) {
				t.Errorf("operation %v is valid with verb %v: %t, the table says verbs %s", own, verb, valid, row[2])
			}
		}
		own++
	}
	if own != atomic.NumOps {
		t.Errorf("the table of our own operations ends before %v", own)
	}
}

// bitOf returns the number of a single bit.
func bitOf(f Features) int { return bits.TrailingZeros32(uint32(f)) }
