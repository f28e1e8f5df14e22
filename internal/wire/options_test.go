// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// The remainder of a hello is a list of options if it says so. Options that this version
// does not know are skipped, wherever they are; a list that does not end where the hello
// ends is refused.
func TestOptions(t *testing.T) {
	class := Class{DSCP: 46, PCP: 5}
	proof := Proof([]byte("thirty-two bytes of a keyed hash"))
	connection := Connection{Set: true, Endpoint: 0x0201, Origin: 3}
	connection.Fill([]byte("hi"))
	connect := []byte{3, 12, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 'h', 'i'}
	resident := []byte{4, 8, 1, 2, 3, 4, 5, 6, 7, 8}
	prove := append([]byte{2, 32}, proof[:]...)
	for name, c := range map[string]struct {
		features  Features
		remainder []byte
		want      Options
		reason    Reason
	}{
		"none":             {FeatureOptions, nil, Options{}, ReasonOK},
		"not announced":    {FeatureMemory, []byte{1, 2, 46, 5}, Options{}, ReasonOK},
		"class":            {FeatureOptions, []byte{1, 2, 46, 5}, Options{Class: class}, ReasonOK},
		"behind more bits": {FeatureOptions | FeatureMore, []byte{9, 9, 9, 9, 1, 2, 46, 5}, Options{Class: class}, ReasonOK},
		"more bits alone":  {FeatureOptions | FeatureMore, []byte{9, 9}, Options{}, ReasonOK},
		"between others":   {FeatureOptions, []byte{200, 3, 1, 2, 46, 1, 2, 46, 5, 201, 0}, Options{Class: class}, ReasonOK},
		"proof":            {FeatureOptions, prove, Options{Proof: proof, Proven: true}, ReasonOK},
		"class and proof":  {FeatureOptions, append([]byte{1, 2, 46, 5}, prove...), Options{Class: class, Proof: proof, Proven: true}, ReasonOK},
		"behind a proof":   {FeatureOptions, append(bytes.Clone(prove), 200, 0), Options{}, ReasonBadPayload},
		"short proof":      {FeatureOptions, []byte{2, 3, 1, 2, 3}, Options{}, ReasonBadPayload},
		"connection":       {FeatureOptions, connect, Options{Connection: connection}, ReasonOK},
		"of a connection":  {FeatureOptions, append(bytes.Clone(connect), prove...), Options{Connection: connection, Proof: proof, Proven: true}, ReasonOK},
		"short connection": {FeatureOptions, []byte{3, 9, 1, 2, 3, 0, 0, 0, 0, 0, 0}, Options{}, ReasonBadPayload},
		"long connection":  {FeatureOptions, append([]byte{3, 67}, make([]byte, 67)...), Options{}, ReasonBadPayload},
		"resident":         {FeatureOptions, resident, Options{Resident: 0x0807060504030201}, ReasonOK},
		"of a key":         {FeatureOptions, append(bytes.Clone(resident), prove...), Options{Resident: 0x0807060504030201, Proof: proof, Proven: true}, ReasonOK},
		"short resident":   {FeatureOptions, []byte{4, 7, 1, 2, 3, 4, 5, 6, 7}, Options{}, ReasonBadPayload},
		"kind alone":       {FeatureOptions, []byte{1}, Options{}, ReasonBadPayload},
		"cut off":          {FeatureOptions, []byte{1, 2, 46}, Options{}, ReasonBadPayload},
		"other cut off":    {FeatureOptions, []byte{200, 9, 0}, Options{}, ReasonBadPayload},
		"short class":      {FeatureOptions, []byte{1, 1, 46}, Options{}, ReasonBadPayload},
		"long class":       {FeatureOptions, []byte{1, 3, 46, 5, 0}, Options{}, ReasonBadPayload},
		"codepoint":        {FeatureOptions, []byte{1, 2, 64, 5}, Options{}, ReasonBadPayload},
		"priority":         {FeatureOptions, []byte{1, 2, 46, 8}, Options{}, ReasonBadPayload},
	} {
		b := make([]byte, HelloLen+HelloRoom)
		(&HelloMsg{Features: c.features}).Put(b)
		b = append(b[:HelloLen], c.remainder...)
		var hello HelloMsg
		if r := hello.Parse(b); r != c.reason || r == ReasonOK && hello.Options != c.want {
			t.Errorf("hello, %s: %+v, %v; want %+v, %v", name, hello.Options, r, c.want, c.reason)
		}
		var ack HelloAckMsg
		(&HelloAckMsg{Features: c.features}).Put(b[:cap(b)])
		copy(b[HelloLen:], c.remainder)
		if r := ack.Parse(b); r != c.reason || r == ReasonOK && ack.Options != c.want {
			t.Errorf("hello-ack, %s: %+v, %v; want %+v, %v", name, ack.Options, r, c.want, c.reason)
		}
	}
}

// A challenge has what outlives the target's process, and no byte more for it.
func TestChallengeIsShort(t *testing.T) {
	b := make([]byte, HelloLen+HelloRoom)
	want := HelloAckMsg{Nonce: 1, Status: HelloChallenge, Cookie: Cookie{2}, Life: 3, Options: Options{Resident: 0x8877665544332211}}
	n := want.Put(b)
	var got HelloAckMsg
	if r := got.Parse(b[:n]); n != HelloLen || r != ReasonOK || got != want {
		t.Errorf("%d bytes, %v: %+v, want %d and %+v", n, r, got, HelloLen, want)
	}
}

// FuzzHello gives arbitrary bytes to the parsers of hello and hello-ack. What they take,
// they write again; and read again, it says the same.
func FuzzHello(f *testing.F) {
	b := make([]byte, HelloLen+HelloRoom)
	hello := HelloMsg{Nonce: 1, Endpoint: 2, Options: Options{Class: Class{DSCP: 46, PCP: 5}, Proof: Proof{7}, Proven: true}}
	f.Add(bytes.Clone(b[:hello.Put(b)]))
	f.Add(append(b[:HelloLen:HelloLen], pattern(HelloRoom)...))
	hello.Options.Resident = 9
	hello.Options.Connection = Connection{Set: true, Endpoint: 3, Len: 4, Data: [ConnectionData]byte{5}}
	f.Add(bytes.Clone(b[:hello.Put(b)]))
	later := bytes.Clone(b[:hello.Put(b)]) // of a version that has another word of features
	binary.LittleEndian.PutUint32(later[helloFeatures:], uint32(FeatureMore|FeatureOptions))
	f.Add(slices.Insert(later, HelloLen, 1, 2, 3, 4))
	more := HelloMsg{Features: FeatureMore}
	f.Add(bytes.Clone(b[:more.Put(b)]))
	challenge := HelloAckMsg{Status: HelloChallenge, Options: Options{Resident: 1 << 40}}
	f.Add(bytes.Clone(b[:challenge.Put(b)]))
	f.Fuzz(func(t *testing.T, b []byte) {
		again := make([]byte, HelloLen+HelloRoom)
		var hello, hello2 HelloMsg
		if hello.Parse(b) == ReasonOK && (hello2.Parse(again[:hello.Put(again)]) != ReasonOK || hello2 != hello) {
			t.Errorf("hello %+v became %+v", hello, hello2)
		}
		var ack, ack2 HelloAckMsg
		if ack.Parse(b) == ReasonOK && (ack2.Parse(again[:ack.Put(again)]) != ReasonOK || ack2 != ack) {
			t.Errorf("hello-ack %+v became %+v", ack, ack2)
		}
	})
}
