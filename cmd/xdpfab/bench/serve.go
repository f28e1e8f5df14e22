// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/internal/load"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Limits of what one Serve gives to all that ask.
const (
	maxServed = 256       // endpoints
	maxBuffer = 256 << 20 // bytes of messages that are awaited at an endpoint
)

// server answers messages of runs at other nodes.
type server struct {
	dom   *xdpfab.Domain
	box   *xdpfab.Mailbox
	log   func(format string, args ...any)
	sides map[string]*side

	manual bool         // progress of the domain
	busy   atomic.Int32 // sides that answer
}

// wait reports whether sides wait for messages, in place of polling: not one that is
// alone, with manual progress.
func (s *server) wait() bool { return !s.manual || s.busy.Load() > 1 }

// side is an endpoint that answers those of one other.
type side struct {
	name     string // of the other
	line     *load.Line
	stop     context.CancelFunc
	stopped  chan error
	back     bool          // it sends, and the other answers
	messages atomic.Uint64 // received, in their order, or sent
	seen     uint64        // of them, when drop last looked
	since    time.Time     // when that was another number
}

// Serve answers the messages of runs at other nodes until the context ends. They ask at
// the mailbox. With manual progress one that is alone is answered by polling.
func Serve(ctx context.Context, dom *xdpfab.Domain, box *xdpfab.Mailbox, manual bool,
	log func(string, ...any)) error {
	s := &server{dom: dom, box: box, log: log, manual: manual, sides: map[string]*side{}}
	defer func() {
		for _, d := range s.sides {
			d.end()
		}
	}()
	buf := make([]byte, maxAsk)
	for look := false; ctx.Err() == nil; {
		m, err := s.next(ctx, buf, look)
		switch look = err == nil; {
		case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		case err != nil:
			return err
		default:
			if err := s.answer(ctx, m); err != nil && ctx.Err() == nil {
				log("%v: %v", m.From, err)
			}
		}
		s.drop()
	}
	return nil
}

// pause is how long nobody looks into the mailbox while messages are answered, unless one
// has just been there. A call that waits there would share the work of those that answer,
// so that with manual progress messages would go from thread to thread.
const pause = 20 * time.Millisecond

// next waits for a message in the mailbox; while messages are answered it returns without
// one after a while. With look it begins at once.
func (s *server) next(ctx context.Context, buf []byte, look bool) (xdpfab.Received, error) {
	if len(s.sides) == 0 {
		return s.box.Receive(ctx, buf)
	}
	if !look {
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	return s.box.Receive(ctx, buf)
}

// answer does what a message asks for, and says so to its sender.
func (s *server) answer(ctx context.Context, m xdpfab.Received) error {
	var a ask
	err := json.Unmarshal(m.Bytes, &a)
	if err != nil {
		return fmt.Errorf("a message that asks for nothing: %w", err)
	}
	back, err := s.box.Dial(ctx, m.From.String())
	if err != nil {
		return err
	}
	other := fmt.Sprintf("%s/%d", NodeOf(m.From.String()), a.Endpoint)
	var r answer
	if a.End {
		r, err = s.end(ctx, other, a)
	} else {
		r, err = s.begin(ctx, other, a)
	}
	if err != nil {
		r.Error = err.Error()
	}
	text, e := json.Marshal(r)
	if e == nil {
		e = back.Send(ctx, text)
	}
	return errors.Join(err, e, back.Close())
}

// begin makes an endpoint that answers those of another.
func (s *server) begin(ctx context.Context, other string, a ask) (answer, error) {
	switch {
	case len(s.sides) == maxServed:
		return answer{}, fmt.Errorf("%d endpoints are served: want no more", maxServed)
	case a.Size < load.WordSize || a.Flight < 1 || a.Size > maxBuffer/a.Flight:
		return answer{}, fmt.Errorf("%d messages of %d bytes in flight: want at most %s", a.Flight, a.Size,
			show.Size(maxBuffer))
	}
	line, err := load.NewLine(s.dom, load.LineAttr{Number: fi.AnyNumber, Flight: a.Flight, Untagged: a.Untagged,
		Wait: s.wait})
	if err != nil {
		return answer{}, err
	}
	x, err := load.NewTransfer(line, load.TransferConfig{Test: a.Test, Size: a.Size, Flight: a.Flight}, !a.Back)
	if err == nil {
		err = line.Reach(ctx, other)
	}
	if err != nil {
		return answer{}, errors.Join(err, line.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	d := &side{name: other, line: line, stop: stop, stopped: make(chan error, 1), back: a.Back,
		since: time.Now()}
	if old := s.sides[other]; old != nil { // of a process that is gone
		old.end()
	}
	s.sides[other] = d
	s.busy.Add(1)
	go func() {
		defer s.busy.Add(-1)
		d.stopped <- d.run(ctx, x)
	}()
	s.log("%s: %s of %s", other, a.Test, show.Size(uint64(a.Size)))
	return answer{Endpoint: line.Number(), Back: a.Back}, nil
}

func (d *side) run(ctx context.Context, x *load.Transfer) error {
	defer d.stop()
	step := x.ServeStep
	if d.back {
		step = x.Step
	}
	for ctx.Err() == nil {
		if err := step(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		d.messages.Store(x.Messages())
	}
	if !d.back {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return x.Drain(ctx) // what is under way arrives yet
}

// patience is how long the last messages of an endpoint may take to arrive.
const patience = 5 * time.Second

// end stops the endpoint.
func (d *side) end() error {
	d.stop()
	return errors.Join(<-d.stopped, d.line.Close())
}

// silence is how long an endpoint may receive nothing before it is ended: its peer was
// killed, since a run sends all the time.
const silence = time.Minute

// drop ends the endpoints that have failed, and those whose peers are silent.
func (s *server) drop() {
	for name, d := range s.sides {
		if n := d.messages.Load(); n != d.seen {
			d.seen, d.since = n, time.Now()
		}
		if len(d.stopped) == 0 && time.Since(d.since) < silence {
			continue
		}
		if err := d.end(); err != nil {
			s.log("%s: %v", name, err)
		}
		delete(s.sides, name)
	}
}

// end ends the endpoint of another, once it has received all that was sent, or does not.
func (s *server) end(ctx context.Context, other string, a ask) (answer, error) {
	d := s.sides[other]
	if d == nil {
		return answer{}, fmt.Errorf("endpoint %s is not served", other)
	}
	until := time.Now().Add(patience)
	for !d.back && d.messages.Load() < a.Sent && time.Now().Before(until) && ctx.Err() == nil {
		if len(d.stopped) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	delete(s.sides, other)
	err := d.end()
	n := d.messages.Load()
	if d.back {
		s.log("%s: %d messages sent", other, n)
		return answer{Sent: n}, err
	}
	s.log("%s: %d messages received", other, n)
	return answer{Received: n}, err
}
