// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// saysOfSilence checks the text of an error about a silent peer.
func saysOfSilence(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.Is(err, fi.ErrPeerSilent) || !errors.Is(err, syscall.ETIMEDOUT) {
		t.Fatalf("%v, want ErrPeerSilent", err)
	}
	if !regexp.MustCompile("^" + want + "$").MatchString(err.Error()) {
		t.Errorf("the error is\n%v\nwant\n%s", err, want)
	}
}

// The error of a silent peer says what is known: for how long, to how many packets, by
// which way, and whether it had answered before; and why that may be.
func TestErrorOfSilentPeer(t *testing.T) {
	f := setUp(t, fi.DomainAttr{GiveUp: 200 * time.Millisecond}, 64)
	const causes = `: likely causes: \(1\) no domain is open there; \(2\) SetFaults or Partition loses the packets; ` +
		`\(3\) its domain has ProgressManual, and nobody calls Progress`
	_, err := f.client.Dial(ctx(t), "02:00:00:00:00:77")
	saysOfSilence(t, err, `xdpfab: connect on 02:00:00:00:00:77: not executed: peer does not answer: silent for \d.* and \d+ packets `+
		`over raw Ethernet; it has never answered`+causes)
	if calls.SilenceTold(err); regexp.MustCompile("likely").MatchString(err.Error()) {
		t.Errorf("likely causes beside the true one: %v", err)
	}
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
	if _, err := w.Add(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	if err := cableOf(f.client).SetFaults(fi.Faults{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	_, err = w.Add(ctx(t), 1)
	saysOfSilence(t, err, `xdpfab: Add of word 0 of a region without a name on [0-9a-f:]+: outcome unknown: peer does not answer: silent for \d.* `+
		`and \d+ packets over raw Ethernet; it had answered before`+causes)
}

// A call whose context ends before a silent peer is given up says that the peer is silent
// as well, and the cause is the context's.
func TestDeadlineOfSilentPeer(t *testing.T) {
	clock, a := fi.NewClock(fi.DomainAttr{})
	f := setUp(t, a, 64)
	limited, cancel := context.WithCancelCause(ctx(t))
	ended := errors.New("too late")
	dial := make(chan error, 1)
	go func() {
		_, err := f.client.Dial(limited, "02:00:00:00:00:77")
		dial <- err
	}()
	testnet.Eventually(t, "the peer is asked several times", func() bool {
		clock.Forward(10*time.Millisecond, cableOf(f.client).Domain)
		return counter(t, f.client, "packets_sent") > 4
	})
	cancel(ended)
	err := <-dial
	if !errors.Is(err, ended) || errors.Is(err, fi.ErrPeerSilent) || !errors.Is(err, fi.ErrNotExecuted) {
		t.Errorf("%v, want the cause of the context", err)
	}
	if !regexp.MustCompile(`not executed: too late: peer does not answer: silent for \S+ and \d packets over raw Ethernet; ` +
		`it has never answered: likely causes:`).MatchString(err.Error()) {
		t.Errorf("the error does not say that the peer is silent: %v", err)
	}
}
