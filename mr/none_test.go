// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"context"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Methods of an owner whose region or memory is nil, since it did not look at an error,
// say so.
func TestNone(t *testing.T) {
	for _, r := range []*Region{nil, {}} {
		_, u64 := r.Uint64(0)
		_, i64 := r.Int64(0)
		_, u32 := r.Uint32(0)
		_, i32 := r.Int32(0)
		for i, err := range []error{u64, i64, u32, i32, r.Close(), r.CloseContext(context.Background())} {
			if !errors.Is(err, ErrClosed) || !errors.Is(err, errno.Closed) {
				t.Errorf("call %d: %v, want ErrClosed", i, err)
			}
		}
		r.Changed()
		if r.Bytes() != nil || r.Len() != 0 || r.Name() != "" || r.Key() != 0 || r.Memory() != nil || !r.Closed() ||
			r.Remote() != (RemoteRegion{}) || r.Tally() != (Tally{}) || r == nil && r.String() != "none" {
			t.Errorf("region %v has something", r)
		}
	}
	var m *Memory
	_, registered := NewTable().Register(m, Options{})
	for i, err := range []error{m.Close(), m.Sync(), registered} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("memory, call %d: %v, want ErrClosed", i, err)
		}
	}
	if m.Bytes() != nil || m.FD() != -1 {
		t.Error("no memory has something")
	}
}
