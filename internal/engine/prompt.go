// SPDX-License-Identifier: Apache-2.0

package engine

// Sending an acknowledgement costs the kernel about as much as the rest of a round trip.
// If the caller usually answers messages, the engine holds the acknowledgement for one
// round, so that it rides in the answer's frame (see rider.go), or leaves behind it, if
// it cannot. A caller that breaks the habit delays one acknowledgement until it makes
// progress again. The engine holds acknowledgements only in Poll, whose callers have to
// come back to receive anything.

// prompt is the engine's knowledge of a caller that answers messages.
type prompt struct {
	mayWait bool  // this round is one of Poll
	came    bool  // messages have run in this round, or had in the last one
	waited  bool  // acknowledgements wait for this round, or the next one
	habit   uint8 // messages in a row that were answered in the round behind them
}

// habitual is the habit from which on acknowledgements wait.
const habitual = 8

// begin begins a round of Poll. answers says whether the caller has posted since the last
// one.
func (p *prompt) begin(answers bool) {
	switch {
	case !p.came:
	case !answers:
		p.habit = 0
	case p.habit < habitual:
		p.habit++
	}
	p.mayWait, p.came = true, false
}

// answered reports whether a message that comes in this round will most likely be
// answered in the round behind it. What is not needed for the answer had better wait for
// it too.
func (p *prompt) answered() bool { return p.mayWait && p.habit == habitual }

// acknowledgesLater reports whether what is due waits for the next round: a message has
// come, and nothing but its session has something to send. In the round behind that, its
// session is the last one to send.
func (e *Engine) acknowledgesLater() bool {
	p := &e.prompt
	if p.waited {
		p.waited = false
		return false
	}
	p.waited = p.answered() && p.came && e.sent == 0 && len(e.dirty) == 1
	return p.waited
}
