// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// An attached domain is a regionKeeper.

// TakeBack has the host give back a region that it keeps.
func (a *Attached) TakeBack(name string) (told share.Region, fd int, err error) {
	fds, err := a.callFor(context.Background(), share.CallTakeBack, name, &told)
	if err == nil && len(fds) != 1 {
		err = fmt.Errorf("%d file descriptors: want the memfd of the region", len(fds))
	}
	if err != nil {
		share.CloseAll(fds)
		return told, -1, err
	}
	return told, fds[0], nil
}

// Took records a region that was taken back, for the next host.
func (a *Attached) Took(r share.Region, m *mr.Memory) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.regions = append(a.regions, offered{Region: r, memory: m, kept: true})
}

// Keep has the host keep a region, and the next host too.
func (a *Attached) Keep(r *mr.Region) error {
	if err := a.Call(context.Background(), share.CallKeep, r.Key(), nil); err != nil {
		return err
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	for i := range a.regions {
		if a.regions[i].Key == r.Key() {
			a.regions[i].kept = true
		}
	}
	return nil
}

// keeps reports whether a region is kept.
func (a *Attached) keeps(key uint64) bool {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	for _, r := range a.regions {
		if r.Key == key {
			return r.kept
		}
	}
	return false
}
