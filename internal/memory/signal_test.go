// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// looker sees the word of a region each time when it is told of operations.
type looker struct {
	word []byte
	last byte // of the word, when it was told last
}

func (l *looker) Touched(_, _, _, _ int) { l.last = l.word[0] }
func (l *looker) Closed()                {}

// A watcher that is told of a write with a signal sees the signal, in the region of the
// bytes or in another one: a program that it wakes looks at the word then, and not again.
func TestSignalIsThereWhenTold(t *testing.T) {
	table := mr.NewTable()
	m := New(table)
	defer m.Close()
	one, two := uint64(1), uint64(2)
	for _, r := range []*mr.Region{register(t, table, &one), register(t, table, &two)} {
		l := &looker{word: r.Bytes()[8:16]}
		r.Observe(l)
		signal := wire.Signal{Key: r.Key(), Offset: 8, Op: wire.OpWrite, Datatype: wire.Byte, Operand: 9}
		write := remoteWrite(1, 64, make([]byte, 5))
		write.Verb, write.Total, write.Compare = wire.VerbSignal, write.Count, make([]byte, wire.SignalLen)
		signal.Put(write.Compare)
		if statuses, _ := frame(t, m, write); statuses[0] != wire.StatusOK {
			t.Fatal(statuses)
		}
		if l.last != 9 {
			t.Errorf("signal in region %d: its observer was told when the word was %d, want 9", r.Key(), l.last)
		}
	}
}
