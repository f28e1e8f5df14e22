// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// says checks that an error is one, and what it says.
func says(t *testing.T, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !regexp.MustCompile(text).MatchString(err.Error()) {
		t.Errorf("%v, want %v and %q", err, want, text)
	}
}

// A mailbox that got no message says for how long, and what helps.
func TestReceiveLate(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(a.CloseAll(), b.CloseAll()) }()
	box, err := a.NewMailbox(xdpfab.MailboxAttr{Number: 5})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = box.Receive(ctx, make([]byte, 8))
	says(t, err, context.DeadlineExceeded, `^xdpfab: mailbox 5: waited \d+ms, and no message was taken: have a peer send one, `+
		`or give the context more time: context deadline exceeded$`)
}

// A cluster of a domain that there is not says that the domain is missing.
func TestClusterOfNoDomain(t *testing.T) {
	_, err := xdpfab.NewCluster(nil, nil).Dial(t.Context(), "x")
	says(t, err, xdpfab.ErrClosed, "the Domain is nil or a zero value: want one of Open")
	_, err = new(xdpfab.Cluster).Dial(t.Context(), "x")
	says(t, err, xdpfab.ErrClosed, "the Cluster is nil or a zero value: want one of NewCluster")
}
