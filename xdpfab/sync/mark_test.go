// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A refusal says in words what was wrong, and has no cause that is foreign to it.
func TestRefusalTexts(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	at := w.at(1, 0)
	on := on(at.Home)
	must(NewQueue(ctx, at, 4))(t)
	must(NewMutex(ctx, w.at(1, 1024), time.Second))(t)
	mutex := func(p Place, lease time.Duration) error { _, err := NewMutex(ctx, p, lease); return err }
	for _, c := range []struct {
		got  error
		want string
	}{
		{mutex(at, time.Second),
			"NewMutex at offset 0 of region \"parts\"" + on + ": a Queue is there: want memory that is all zero"},
		{mutex(w.at(1, 1024), 2*time.Second), "NewMutex at offset 1024 of region \"parts\"" + on +
			": a Mutex with other parameters than lease 2s is there; the memory does not tell them: want those that the " +
			"program which made it has named, or another offset"},
		{mutex(w.at(1, 100), time.Second),
			"NewMutex at offset 100 of region \"parts\"" + on + ": want an offset that is a multiple of 64"},
		{mutex(Place{Region: "parts"}, time.Second),
			"NewMutex at offset 0 of region \"parts\" without a home: want Place.Home, a peer or a cluster"},
		{mutex(Place{Home: at.Home}, time.Second),
			"NewMutex at offset 0 of region \"\"" + on + ": want Place.Region, the name of a region there"},
		{mutex(at, time.Microsecond),
			"NewMutex with a lease of 1µs: want at least 1ms, better some hundred round trips"},
		{limiterError(ctx, at, 1, 0), "NewLimiter with a period of 0s: want at least 1ms"},
		{limiterError(ctx, at, 0, time.Second), "NewLimiter with a quota of 0: want 1 to 16777215"},
	} {
		if c.got == nil || c.got.Error() != "xdpfab: "+c.want {
			t.Errorf("%v\nwant %s", c.got, c.want)
		}
	}
	p := must(NewQueue(ctx, at, 4))(t).part
	for mark, want := range map[uint64]string{
		markOf(kindBoard+1, 0):    "a primitive of the unknown kind 14 is there: want memory that is all zero",
		p.mark + 1<<24:            "a Queue of layout version 2 is there: want version 1",
		1 + uint64(kindQueue)<<16: "data (0x50001) is there: want memory that is all zero",
	} {
		if err := p.otherPart(mark); !errors.Is(err, ErrLayout) || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func limiterError(ctx context.Context, at Place, quota uint64, period time.Duration) error {
	_, err := NewLimiter(ctx, at, 1, quota, period)
	return err
}

// A parameter that no part can have is refused in one way by all of them.
func TestParameters(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	at := w.at(1, 0)
	for name, err := range map[string]error{
		"NewBarrier":   second(NewBarrier(ctx, at, 0, 0)),
		"NewBoard":     second(NewBoard(ctx, at, 0)),
		"NewCountdown": second(NewCountdown(ctx, at, 0)),
		"NewCounter":   second(NewCounter(ctx)),
		"NewHistogram": second(NewHistogram(ctx, at)),
		"NewLimiter":   second(NewLimiter(ctx, at, 0, 1, time.Second)),
		"NewQueue":     second(NewQueue(ctx, at, 0)),
		"NewRWMutex":   second(NewRWMutex(ctx, at, 0, time.Second)),
		"NewSemaphore": second(NewSemaphore(ctx, at, 0, time.Second)),
		"NewSequencer": second(NewSequencer(ctx, at, 0)),
	} {
		if !errors.Is(err, ErrParameter) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
