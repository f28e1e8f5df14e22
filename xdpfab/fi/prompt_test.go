// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A message is acknowledged when it is received. Once a caller has the habit of answering
// at once, the acknowledgement waits for the answer, but no longer than until the caller
// makes progress again; and a message that is not answered ends the habit.
func TestAcknowledgementWaitsForAnswer(t *testing.T) {
	sides := newSides(t, 4096)
	message, receive := fi.Message{Buf: make([]byte, 8)}, fi.Receive{Buf: make([]byte, 8)}
	near, far := sides[0], sides[1]
	// acknowledged sends one message, which far receives, and reports whether near learns
	// that before far is called again.
	acknowledged := func() bool {
		t.Helper()
		message.Dest = near.peer
		if err := errors.Join(far.ep.ReceiveTagged(&receive, 0), near.ep.SendTagged(&message, 0)); err != nil {
			t.Fatal(err)
		}
		for got := 0; got == 0; _, got = far.collect(t) {
			near.collect(t)
		}
		all := 0
		for range 10 {
			sent, _ := near.collect(t)
			all += sent
		}
		if all == 1 {
			return true
		}
		far.collect(t)
		for range 10 {
			sent, _ := near.collect(t)
			all += sent
		}
		if all != 1 {
			t.Fatalf("%d messages were acknowledged after far made progress, want 1", all)
		}
		return false
	}
	settle := func() {
		for range 10 {
			near.collect(t)
			far.collect(t)
		}
	}
	for range 3 {
		if !acknowledged() {
			t.Fatal("without the habit of answers, an acknowledgement waited")
		}
	}
	// The acknowledgement leaves at once beside a frame of another kind. A machine that
	// stops this thread makes timers send such frames, so that one attempt proves
	// nothing.
	const attempts = 50
	waited := false
	for i := 0; i < attempts && !waited; i++ {
		for range 20 {
			trip(t, sides, &message, &receive)
		}
		settle()
		waited = !acknowledged()
	}
	if !waited {
		t.Errorf("with the habit of answers, none of %d acknowledgements waited", attempts)
	}
	settle()
	if !acknowledged() {
		t.Error("a message without an answer did not end the habit")
	}
}

// A domain that is closed acknowledges what it has received.
func TestCloseAcknowledges(t *testing.T) {
	sides := newSides(t, 4096)
	message, receive := fi.Message{Buf: make([]byte, 8)}, fi.Receive{Buf: make([]byte, 8)}
	for range 20 {
		trip(t, sides, &message, &receive)
	}
	near, far := sides[0], sides[1]
	message.Dest = near.peer
	if err := errors.Join(far.ep.ReceiveTagged(&receive, 0), near.ep.SendTagged(&message, 0)); err != nil {
		t.Fatal(err)
	}
	for got := 0; got == 0; _, got = far.collect(t) {
		near.collect(t)
	}
	if err := far.dom.CloseAll(); err != nil {
		t.Fatal(err)
	}
	for sent := 0; sent == 0; sent, _ = near.collect(t) { // an error fails the test
	}
}
