// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Conversation is that of a guest with its host: any number of calls at a time, whose
// answers one goroutine takes.
type Conversation struct {
	waits    time.Duration // for a next hop, at most: the give-up time in force
	Patience time.Duration // answerWithin, unless it is 0; for tests

	Mu    sync.Mutex
	Talk  *share.Talk
	Calls map[uint64]chan Answer
	last  uint64
	Ended error // why there is no host; nil while there is one
}

// listen takes the answers of a host, until it has gone. What the host says unasked goes
// to notice, which may be nil.
func (c *Conversation) listen(talk *share.Talk, notice func(json.RawMessage)) error {
	for {
		var r share.Reply
		fds, err := talk.Receive(&r)
		if err != nil {
			share.CloseAll(fds)
			_ = talk.Close()
			return err
		}
		if r.ID == 0 && r.Error != "" { // it turns the program out
			share.CloseAll(fds)
			_ = talk.Close()
			return Replied(r)
		}
		if r.ID == 0 && notice != nil {
			share.CloseAll(fds)
			notice(r.Result)
			continue
		}
		c.Mu.Lock()
		if x := c.Calls[r.ID]; x != nil {
			x <- Answer{r, fds} // there is room for it
			delete(c.Calls, r.ID)
		} else {
			share.CloseAll(fds)
		}
		c.Mu.Unlock()
	}
}

// cut ends the calls under way, and those to come, when the host has gone. c.mu is held.
func (c *Conversation) cut(why error) {
	c.Ended = fmt.Errorf("%w, or has turned this program out: its log says why (%w)", errno.HostLost, why)
	for id, answer := range c.Calls {
		close(answer)
		delete(c.Calls, id)
	}
}

// Answer is what a host says to a call, and the file descriptors that come with it, which
// are the caller's.
type Answer struct {
	share.Reply
	fds []int
}

// answerWithin is how long a host may take to answer, in addition to the give-up time
// that it may spend on a silent next hop.
const answerWithin = time.Minute

// Call has the host do something. A host that does not answer is taken for lost: the
// guest cannot know what the host did of the call, so the two would no longer agree on
// what the guest has.
func (c *Conversation) Call(ctx context.Context, verb string, arguments, result any, fds ...int) error {
	got, err := c.callFor(ctx, verb, arguments, result, fds...)
	share.CloseAll(got)
	return err
}

// callFor is call for an answer with file descriptors, which are the caller's, also if
// there is an error.
func (c *Conversation) callFor(ctx context.Context, verb string, arguments, result any, fds ...int) ([]int, error) {
	limit := cmp.Or(c.Patience, answerWithin) + c.waits
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrHostSilent)
	defer cancel()
	if WatchCall != nil {
		defer WatchCall(verb)()
	}
	got, err := c.await(ctx, verb, arguments, result, fds...)
	if errors.Is(err, ErrHostSilent) {
		c.EndTalk()
		return got, fmt.Errorf("%w: it has not answered for %v (%s): %w", errno.HostLost, limit, verb, err)
	}
	return got, err
}

// faultWithin is how long a host may take to say what is wrong on its node: an error's
// text waits for it.
const faultWithin = time.Second

// ownFault asks the host why no packet of its node reaches an address; "" if it does not
// say.
func (c *Conversation) ownFault(to wire.Addr) (fault string) {
	ctx, cancel := context.WithTimeout(context.Background(), faultWithin)
	defer cancel()
	if c.Call(ctx, share.CallOwnFault, share.Addr(to), &fault) != nil {
		return ""
	}
	return fault
}

// WatchCall, unless it is nil, is called as a call begins, and its result as the call
// ends. Tests set it.
var WatchCall func(verb string) (ended func())

// ErrHostSilent means that the host does not answer a call.
var ErrHostSilent = errors.New(
	"it does not answer: it is stopped, or its machine is overloaded: have it go on (kill -CONT), or restart it")

// EndTalk ends the present conversation.
func (c *Conversation) EndTalk() {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Talk.End()
}

// listenFor is call for something that may take long, such as another program's answer.
func (c *Conversation) listenFor(ctx context.Context, verb string, arguments, result any, fds ...int) error {
	got, err := c.await(ctx, verb, arguments, result, fds...)
	share.CloseAll(got)
	return err
}

// await makes a call, and waits for the answer, whose file descriptors are the caller's.
func (c *Conversation) await(ctx context.Context, verb string, arguments, result any, fds ...int) ([]int, error) {
	args, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	answers := make(chan Answer, 1)
	c.Mu.Lock()
	if c.Ended != nil {
		defer c.Mu.Unlock()
		return nil, c.Ended
	}
	c.last++
	id, talk := c.last, c.Talk
	c.Calls[id] = answers
	c.Mu.Unlock()
	if err := talk.Send(share.Call{ID: id, Verb: verb, Arguments: args}, fds...); err != nil {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		delete(c.Calls, id)
		return nil, fmt.Errorf("%w (%w)", errno.HostLost, err)
	}
	select {
	case r, ok := <-answers:
		switch {
		case !ok:
			c.Mu.Lock()
			defer c.Mu.Unlock()
			return nil, c.Ended
		case r.Error != "":
			return r.fds, Replied(r.Reply)
		case result == nil:
			return r.fds, nil
		}
		return r.fds, json.Unmarshal(r.Result, result)
	case <-ctx.Done():
		c.Mu.Lock()
		defer c.Mu.Unlock()
		delete(c.Calls, id)
		select {
		case r := <-answers: // it came meanwhile, and no one else will take it
			return r.fds, context.Cause(ctx)
		default:
			return nil, context.Cause(ctx)
		}
	}
}
