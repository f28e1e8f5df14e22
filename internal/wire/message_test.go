// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strings"
	"testing"
)

// message has the methods that hello, hello-ack, reset and catalogue entries
// have in common.
type message interface {
	Put([]byte) int
	Parse([]byte) Reason
}

// messages holds one filled message of each kind, and an empty one to parse into.
func messages() map[string][2]message {
	c := Cookie(bytes.Repeat([]byte{7}, CookieLen))
	e := &Entry{Key: 1 << 63, Size: 4096, Access: 3, Datatype: 7, Total: 12, Base: 1<<47 | 5}
	e.SetName("counters")
	return map[string][2]message{
		"hello": {&HelloMsg{Nonce: 1<<63 | 1, Session: 0xfedcba98, Endpoint: 258, MaxFrame: 1500, Window: 64,
			Features: 5, Cookie: c, Resume: Resume{Session: 1, Epoch: 2, PSN: 1 << 31}}, &HelloMsg{}},
		"hello-ack": {&HelloAckMsg{Nonce: 1<<63 | 1, Session: 0xfedcba98, Status: HelloShuttingDown, MaxFrame: 1500,
			Window: 64, Features: 5, Cookie: c, Resume: Resume{Session: 1, Epoch: 2, PSN: 1 << 31}}, &HelloAckMsg{}},
		"reset": {&ResetMsg{Session: 0xfedcba98, PSN: 0x76543210, Reason: ResetOutOfWindow}, &ResetMsg{}},
		"entry": {e, &Entry{Name: [MaxNameLen]byte{1, 2, 3}}},
	}
}

func TestMessagesRoundTrip(t *testing.T) {
	for name, m := range messages() {
		buf := bytes.Repeat([]byte{0xee}, 128)
		n := m[0].Put(buf)
		if !bytes.Equal(buf[n:], bytes.Repeat([]byte{0xee}, 128-n)) {
			t.Errorf("%s: bytes written past the end", name)
		}
		if r := m[1].Parse(buf[:n]); r != ReasonOK {
			t.Errorf("%s: %v", name, r)
		}
		again := make([]byte, n)
		m[1].Put(again)
		if !bytes.Equal(again, buf[:n]) {
			t.Errorf("%s: % x became % x", name, buf[:n], again)
		}
		for k := range 128 {
			remainder := strings.HasPrefix(name, "hello") && k > n // of a later version
			if k != n && (m[1].Parse(buf[:k]) == ReasonOK) != remainder {
				t.Errorf("%s: %d bytes are taken, want %d only", name, k, n)
			}
		}
	}
}

// TestMessagesStrict changes every byte in turn: either the message is refused, or the
// byte has a meaning.
func TestMessagesStrict(t *testing.T) {
	for name, m := range messages() {
		buf := make([]byte, 128)
		n := m[0].Put(buf)
		for i := range n {
			b := bytes.Clone(buf[:n])
			b[i] ^= 0x80
			if m[1].Parse(b) != ReasonOK {
				continue
			}
			again := make([]byte, 128)
			m[1].Put(again)
			again = again[:n]
			lenient := name == "entry" && (i == 16 || i >= 19 && i < 24) // room for what describes a region further
			if bytes.Equal(again, b) == lenient {
				t.Errorf("%s: byte %d is ignored: %v", name, i, !lenient)
			}
		}
	}
}

func TestMessageLayouts(t *testing.T) {
	buf := make([]byte, EntryLen)
	(&HelloMsg{Endpoint: 0x0201, MaxFrame: 0x0403, Window: 0x0605}).Put(buf)
	if want := []byte{1, 2, 3, 4, 5, 6, 0, 0}; !bytes.Equal(buf[12:20], want) {
		t.Errorf("hello: % x, want % x", buf[12:20], want)
	}
	(&HelloAckMsg{Status: HelloFull, MaxFrame: 0x0403, Window: 0x0605}).Put(buf)
	if want := []byte{3, 0, 3, 4, 5, 6, 0, 0}; !bytes.Equal(buf[12:20], want) {
		t.Errorf("hello-ack: % x, want % x", buf[12:20], want)
	}
	(&ResetMsg{}).Put(buf)
	if (&ResetMsg{}).Parse(buf[:ResetLen]) != ReasonBadPayload {
		t.Error("reset reason 0 is taken")
	}
	e := Entry{Access: 3, Datatype: 9, Total: 0x01020304}
	e.SetName("ab")
	e.Put(buf)
	want := []byte{3, 2, 9, 0, 0, 0, 0, 0, 4, 3, 2, 1, 0, 0, 0, 0, 'a', 'b', 0}
	if !bytes.Equal(buf[16:16+len(want)], want) {
		t.Errorf("entry: % x, want % x", buf[16:16+len(want)], want)
	}
}

func TestEntryName(t *testing.T) {
	var e Entry
	if !e.SetName("a longer name") || !e.SetName("short") || e.NameString() != "short" {
		t.Errorf("name is %q", e.NameString())
	}
	if e.SetName(string(make([]byte, MaxNameLen+1))) || e.NameString() != "short" {
		t.Error("a name that is too long is taken")
	}
	buf := make([]byte, EntryLen)
	e.NameLen = 255 // a caller's mistake must not run over the end
	e.Put(buf)
	if e.Parse(buf) != ReasonOK || e.NameLen != MaxNameLen {
		t.Errorf("name length %d", e.NameLen)
	}
	buf[17] = MaxNameLen + 1
	if e.Parse(buf) != ReasonBadName || len(e.NameString()) > MaxNameLen {
		t.Error("an impossible name length is taken")
	}
}
