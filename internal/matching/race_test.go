// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"bytes"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// lockedPlaces is a sink that counts, and hands completions to whoever reads.
type lockedPlaces struct {
	mu   sync.Mutex
	free int
	got  []Done
}

func (s *lockedPlaces) Take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		return false
	}
	s.free--
	return true
}

func (s *lockedPlaces) Return() { s.mu.Lock(); s.free++; s.mu.Unlock() }

func (s *lockedPlaces) Deliver(d *Done) { s.mu.Lock(); s.got = append(s.got, *d); s.mu.Unlock() }

func (s *lockedPlaces) read() []Done {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	s.free += len(got)
	return got
}

// crowd is several sessions and posters that use one queue at once.
type crowd struct {
	t        *testing.T
	q        *Queue
	sink     *lockedPlaces
	each     int
	room     [crowdInflows]chan struct{} // Room was called
	next     [crowdInflows]uint64        // number of the next message of each sender
	buffers  sync.Map                    // by context
	messages int
}

const crowdInflows, crowdPosters = 3, 2

// Several sessions and posters at once: every message arrives once, in order for each
// sender, and what is refused is called for.
func TestManyThreads(t *testing.T) {
	c := &crowd{t: t, sink: &lockedPlaces{free: 8}, each: 2000}
	for i := range c.room {
		c.room[i] = make(chan struct{}, 1)
	}
	c.q = New(Config{Receives: 6, Unexpected: 4, Memory: 2 * ChunkSize, Sink: c.sink, Room: func() {
		for _, room := range c.room {
			select {
			case room <- struct{}{}:
			default:
			}
		}
	}})
	var senders, posters sync.WaitGroup
	for i := range crowdInflows {
		senders.Go(func() { c.send(i) })
	}
	done := make(chan struct{})
	for i := range crowdPosters {
		posters.Go(func() { c.post(i, done) })
	}
	watch := time.AfterFunc(2*time.Minute, func() { panic("no message arrives any more: a call of Room or Freed is missing") })
	for c.messages < crowdInflows*c.each {
		c.read()
	}
	watch.Stop()
	senders.Wait()
	close(done)
	posters.Wait()
	if err := c.q.Check(); err != nil {
		t.Fatal(err)
	}
	if u := c.q.Usage(); u.Held != 0 || u.Memory != 0 {
		t.Errorf("%+v", u)
	}
	c.q.Close()
	c.read()
	if c.sink.free != 8 {
		t.Errorf("%d of 8 places are free", c.sink.free)
	}
}

// send sends messages of many lengths, each in two frames.
func (c *crowd) send(i int) {
	in := c.q.NewInflow(peer(i))
	defer in.Close()
	body := text(3000)
	for n := uint64(0); n < uint64(c.each); n++ {
		data := append(binary.LittleEndian.AppendUint64(nil, n), body[:(n*977)%2500]...)
		s := sent{Message: wire.Message{Data: n, HasData: true}, data: data, part: len(data) / 2}
		for in.Begin(); !s.begin(in); in.Begin() {
			in.End()
			<-c.room[i]
		}
		in.End()
		in.Begin()
		in.Put(data[s.part:])
		in.End()
	}
}

// post posts single receives and multi-receives, and cancels some.
func (c *crowd) post(i int, done chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		context := [2]int{i, n}
		rx := anySource(context, 4000)
		if i == 1 {
			rx.Multi, rx.MinFree = true, 2600
			rx.Buffers[0] = make([]byte, 6000)
		}
		c.buffers.Store(context, rx.Buffers[0])
		if c.q.Post(&rx) != nil {
			c.buffers.Delete(context)
			time.Sleep(10 * time.Microsecond)
		} else if n%5 == 0 {
			c.q.Cancel(context)
		}
	}
}

// read checks what has completed.
func (c *crowd) read() {
	got := c.sink.read()
	c.q.Freed()
	for _, d := range got {
		if d.Reason == Cancelled {
			continue
		}
		c.messages++
		value, ok := c.buffers.Load(d.Context)
		if !ok {
			c.t.Fatalf("a completion of what was not posted: %+v", d)
		}
		have := d.Buf
		if have == nil {
			have = value.([]byte)[:d.Received]
		}
		from := int(d.From.MAC[5])
		want := append(binary.LittleEndian.AppendUint64(nil, c.next[from]), text(3000)[:d.Length-8]...)
		if d.Reason != Received || d.Data != c.next[from] || !bytes.Equal(have, want) {
			c.t.Fatalf("sender %d: %v of message %d, want %d, or other bytes", from, d.Reason, d.Data, c.next[from])
		}
		c.next[from]++
	}
	if len(got) == 0 {
		time.Sleep(10 * time.Microsecond)
	}
}
