// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet/veth"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The parameters of the client process, in its environment.
const (
	envAddress = "XDPFAB_SOAK_ADDRESS"
	envOffset  = "XDPFAB_SOAK_OFFSET" // of its word
	envGiveUp  = "XDPFAB_SOAK_GIVEUP" // its give-up time
	envBook    = "XDPFAB_SOAK_BOOK"   // file: operations posted, u64; acknowledged, u64
)

// clientMain adds to a word until it is killed. Its book is written before each
// post and after each completion, so that after a kill it bounds the word:
// acknowledged <= word <= posted.
func clientMain() error {
	book, err := os.OpenFile(os.Getenv(envBook), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	offset, err := strconv.ParseUint(os.Getenv(envOffset), 10, 64)
	if err != nil {
		return err
	}
	giveUp, err := time.ParseDuration(os.Getenv(envGiveUp))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d, err := xdpfab.Open(ctx, veth.IfName, xdpfab.DomainAttr{GiveUp: giveUp})
	for errors.Is(err, unix.EBUSY) && ctx.Err() == nil { // the killed one's queue is not free yet
		d, err = xdpfab.Open(ctx, veth.IfName, xdpfab.DomainAttr{GiveUp: giveUp})
	}
	if err != nil {
		return err
	}
	av, err := d.NewAddressVector()
	if err != nil {
		return err
	}
	dest, err := av.Insert(ctx, os.Getenv(envAddress))
	if err != nil {
		return err
	}
	cq, err := d.NewCompletionQueue(fi.CQAttr{})
	if err != nil {
		return err
	}
	ep, err := d.NewEndpoint(xdpfab.EndpointAttr{Number: fi.AnyNumber, InitiateOnly: true})
	if err != nil {
		return err
	}
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		return err
	}
	write := func(at int64, n uint64) error {
		_, err := book.WriteAt(binary.NativeEndian.AppendUint64(nil, n), at)
		return err
	}
	var done [64]fi.Completion
	for posted, acked, lost := uint64(0), uint64(0), uint64(0); ctx.Err() == nil; {
		if posted-acked-lost < 32 {
			posted++
			if err := write(0, posted); err != nil {
				return err
			}
			if err := ep.Atomic(&fi.Msg{Buf: ones[:8], Dest: dest, Offset: offset, Key: regionKey, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
				return err
			}
			continue
		}
		if err := cq.Wait(ctx, 1); err != nil {
			return err
		}
		n, err := cq.Read(done[:])
		acked += uint64(n)
		if err != nil {
			c, _ := cq.ReadErr()
			if errors.Is(c.Err, xdpfab.ErrPeerSilent) { // a server on a busy machine: the bounds hold
				lost++
				continue
			}
			return fmt.Errorf("%w: %w", err, c.Err)
		}
		if err := write(8, acked); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// killClients runs client processes one after the other and kills each as soon as
// its first operations are acknowledged.
func killClients(t *testing.T, w *world, n int, giveUp time.Duration) {
	t.Helper()
	for i := range n {
		path := filepath.Join(t.TempDir(), "book")
		must(t, os.WriteFile(path, make([]byte, 16), 0o600))
		at := slotSize*(1+i%maxActors) + 8*(1+i/maxActors) // a word that no other test uses
		var out lockedBuffer
		cmd := disguised("client", envAddress+"="+w.addr, envBook+"="+path, fmt.Sprint(envGiveUp, "=", giveUp), fmt.Sprint(envOffset, "=", at))
		l := leash(t, cmd, w.wire.A, &out)
		read := func() (posted, acked uint64) {
			b, err := os.ReadFile(path)
			must(t, err)
			return binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])
		}
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			if _, acked := read(); acked > 50 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("client %d does nothing: %s", i, out.String())
			}
		}
		must(t, unix.Kill(cmd.Process.Pid, unix.SIGKILL))
		l.letGo()
		survived.add("client kills", 1)
		posted, acked := read()
		if v := w.word(at); v < acked || v > posted {
			t.Errorf("client %d: word is %d, want %d (acknowledged) to %d (posted); %s", i, v, acked, posted, out.String())
		}
	}
}
