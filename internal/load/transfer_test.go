// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// wire joins two ends in memory. Every third post is refused at first.
type wire struct {
	sync.Mutex
	posts      int
	unexpected int // messages that no receive was posted for
	messages   int // so far, from the end that measures
	credited   int // of them
	window     int // the most without a credit
	spoil      func(message []byte)
}

// end is a Transport.
type end struct {
	*wire
	other     *end
	serves    bool
	memory    []byte
	receives  []*operation
	inbox     [][]byte
	completed []fi.Completion
	failure   error
}

func newEnds(memory int) (client, server *end) {
	w := &wire{}
	client, server = &end{wire: w}, &end{wire: w, serves: true, memory: make([]byte, memory)}
	client.other, server.other = server, client
	return client, server
}

func (e *end) room() error {
	if e.posts++; e.posts%3 == 0 {
		return fi.ErrAgain
	}
	return nil
}

func (e *end) Send(buf []byte, c any) error {
	e.Lock()
	defer e.Unlock()
	if err := e.room(); err != nil {
		return err
	}
	if e.serves {
		e.credited += CreditEvery
	} else {
		e.messages++
		e.window = max(e.window, e.messages-e.credited)
	}
	message := bytes.Clone(buf)
	if e.spoil != nil {
		e.spoil(message)
	}
	if len(e.other.receives) == 0 {
		e.unexpected++
	}
	e.other.inbox = append(e.other.inbox, message)
	e.completed = append(e.completed, fi.Completion{Context: c})
	return nil
}

func (e *end) Receive(_ []byte, c any) error {
	e.Lock()
	defer e.Unlock()
	if err := e.room(); err != nil {
		return err
	}
	e.receives = append(e.receives, c.(*operation))
	return nil
}

func (e *end) Write(buf []byte, offset uint64, c any) error { return e.access(buf, offset, c, true) }
func (e *end) Read(buf []byte, offset uint64, c any) error  { return e.access(buf, offset, c, false) }

func (e *end) access(buf []byte, offset uint64, c any, write bool) error {
	e.Lock()
	defer e.Unlock()
	if err := e.room(); err != nil {
		return err
	}
	there := e.other.memory[offset : offset+uint64(len(buf))]
	if write {
		copy(there, buf)
	} else {
		copy(buf, there)
	}
	e.completed = append(e.completed, fi.Completion{Context: c})
	return nil
}

func (e *end) Collect(_ context.Context, batch []fi.Completion) (int, error) {
	e.Lock()
	defer e.Unlock()
	for len(e.inbox) > 0 && len(e.receives) > 0 {
		o := e.receives[0]
		copy(o.buf, e.inbox[0])
		e.inbox, e.receives = e.inbox[1:], e.receives[1:]
		e.completed = append(e.completed, fi.Completion{Context: o})
	}
	n := copy(batch, e.completed)
	e.completed = e.completed[n:]
	return n, e.failure
}

// pair runs a test between two ends, and returns the side that measured.
func pair(t *testing.T, c TransferConfig, client, server *end) (*Transfer, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	s, err := NewTransfer(server, c, true)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		err := s.Serve(ctx)
		if err != nil { // nobody answers any more
			cancel()
		}
		served <- err
	}()
	x, err := NewTransfer(client, c, false)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a warm-up, and the measurement
		if err == nil {
			err = x.Run(ctx, time.Millisecond)
		}
	}
	cancel()
	return x, errors.Join(err, <-served)
}

func TestTransferOfMessages(t *testing.T) {
	for _, c := range []TransferConfig{{Trip, 8, 1}, {Trip, 100, 1}, {Stream, 4096, 64}, {Stream, 8, 32}} {
		client, server := newEnds(0)
		x, err := pair(t, c, client, server)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if x.Done < 2 || x.Done > uint64(client.messages) || c.Test == Trip && x.Latency.Count() != int64(x.Done) {
			t.Errorf("%+v: %d done, %d latencies, of %d messages", c, x.Done, x.Latency.Count(), client.messages)
		}
		if c.Test == Stream && (client.window > c.Flight || x.Done%CreditEvery > 0 || x.Done > uint64(client.credited)) {
			t.Errorf("%+v: %d done, up to %d messages without a credit, %d credits", c, x.Done, client.window, client.credited)
		}
	}
}

// A receiver has a receive posted for each message that its credits let come.
func TestStreamIsExpected(t *testing.T) {
	client, server := newEnds(0)
	c := TransferConfig{Stream, 64, 32}
	s, err := NewTransfer(server, c, true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.postReceives(ctx); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	x, err := NewTransfer(client, c, false)
	if err == nil {
		err = x.Run(ctx, time.Millisecond)
	}
	cancel()
	if err := errors.Join(err, <-served); err != nil || x.Done == 0 {
		t.Fatalf("%d done: %v", x.Done, err)
	}
	if client.unexpected > 0 {
		t.Errorf("%d messages came before their receive", client.unexpected)
	}
}

func TestTransferOfMemory(t *testing.T) {
	for _, test := range []Test{Writes, Reads} {
		c := TransferConfig{test, 1 << 10, 4}
		client, server := newEnds(c.Memory())
		for i := range server.memory {
			server.memory[i] = byte(i)
		}
		x, err := NewTransfer(client, c, false)
		if err != nil {
			t.Fatal(err)
		}
		buffers := make([]*operation, c.Flight)
		for range c.Flight {
			o := x.idle.first()
			x.idle.drop()
			x.idle.add(o)
			buffers[o.offset/1024] = o
			if test == Writes {
				binary.LittleEndian.PutUint64(o.buf, 1000+o.offset)
			}
		}
		if err := x.Run(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if x.Done == 0 || x.Latency.Count() != int64(x.Done) || x.idle.n != c.Flight {
			t.Errorf("%s: %d done, %d latencies, %d idle", test, x.Done, x.Latency.Count(), x.idle.n)
		}
		for _, o := range buffers {
			if !bytes.Equal(o.buf, server.memory[o.offset:][:1024]) {
				t.Errorf("%s: the bytes at %d differ", test, o.offset)
			}
		}
	}
}

// Messages that are lost, doubled or not those that were sent are an error at either
// side.
func TestTransferChecksNumbers(t *testing.T) {
	for _, c := range []TransferConfig{{Trip, 8, 1}, {Stream, 64, 64}} {
		for _, from := range []int{1, 2} {
			client, server := newEnds(0)
			n := 0
			client.spoil = func(m []byte) {
				if n++; n >= from && len(m) == c.Size {
					m[0]++
				}
			}
			if _, err := pair(t, c, client, server); err == nil || !strings.Contains(err.Error(), "message") {
				t.Errorf("%+v: the error is %v", c, err)
			}
		}
	}
}

func TestTransferFails(t *testing.T) {
	for _, c := range []TransferConfig{{Trip, 8, 1}, {Stream, 64, 64}, {Writes, 64, 2}} {
		client, _ := newEnds(c.Memory())
		client.other.memory = make([]byte, 1<<10)
		client.failure = errors.New("the cable is cut")
		x, err := NewTransfer(client, c, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Run(t.Context(), time.Hour); err != client.failure {
			t.Errorf("%+v: %v", c, err)
		}
		if c.Test == Writes {
			continue
		}
		// Nobody answers, until the context ends.
		client.failure = nil
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := x.Run(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v, nobody answers: %v", c, err)
		}
	}
}

func TestTransferConfig(t *testing.T) {
	for _, c := range []TransferConfig{{}, {"ping", 8, 1}, {Trip, 7, 1}, {Trip, 8, 2}, {Stream, 8, 16}, {Stream, 8, 40}, {Writes, 8, 0}} {
		if _, err := NewTransfer(nil, c, false); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestTransferDoesNotAllocate(t *testing.T) {
	c := TransferConfig{Stream, 64, 64}
	x, err := NewTransfer(&loop{}, c, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.postReceives(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(100, func() {
		if err := x.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 || x.Done == 0 {
		t.Errorf("%v allocations a step, %d done", n, x.Done)
	}
}

// loop gives a credit for every CreditEvery messages, and nothing else.
type loop struct {
	sent     [64]any
	num      int
	messages int
	credits  [4]any
	numC     int
}

func (l *loop) Send(_ []byte, c any) error {
	l.sent[l.num] = c
	l.num++
	l.messages++
	return nil
}

func (l *loop) Receive(_ []byte, c any) error {
	l.credits[l.numC] = c
	l.numC++
	return nil
}

func (l *loop) Write([]byte, uint64, any) error { return nil }
func (l *loop) Read([]byte, uint64, any) error  { return nil }

func (l *loop) Collect(_ context.Context, batch []fi.Completion) (n int, err error) {
	for ; l.num > 0; n++ {
		l.num--
		batch[n].Context = l.sent[l.num]
	}
	for ; l.messages >= CreditEvery && l.numC > 0; n++ {
		l.messages -= CreditEvery
		l.numC--
		batch[n].Context = l.credits[l.numC]
	}
	return n, nil
}
