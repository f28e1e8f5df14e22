// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
)

// A host that ended the conversation with a guest, and runs, keeps the guest's regions
// that are marked to be kept. When the guest comes back it takes them back, as the next
// program could, and with them the sessions that peers have.

// regain takes kept regions back from the host, and returns the regions that it does not
// have. It comes before the host gets anything else. Kept regions that the program has
// closed while there was no host are withdrawn.
func (a *Attached) regain(ctx context.Context, regions []offered) (missing []offered, err error) {
	for _, r := range regions {
		err := errno.NotKept
		if r.kept {
			err = a.takeBackOwn(ctx, &r.Region)
		}
		if errors.Is(err, errno.NotKept) {
			missing = append(missing, r)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, a.withdrawClosed(ctx)
}

// withdrawClosed withdraws the kept regions that the program closed while there was no
// host. A region that the host refuses is dropped as well. One whose call lost the host
// stays for the next conversation.
func (a *Attached) withdrawClosed(ctx context.Context) error {
	for {
		a.Mu.Lock()
		if len(a.closedKept) == 0 {
			a.Mu.Unlock()
			return nil
		}
		r := a.closedKept[0]
		a.Mu.Unlock()
		err := a.takeBackOwn(ctx, &r)
		if err == nil {
			err = a.Call(ctx, share.CallDeregister, r.Key, nil)
		}
		if errors.Is(err, errno.HostLost) || ctx.Err() != nil {
			return err
		}
		a.Mu.Lock()
		a.closedKept = a.closedKept[1:]
		a.Mu.Unlock()
		if errors.Is(err, errAnothers) { // which has ended the conversation
			return err
		}
	}
}

// errAnothers means that a region of the same name is kept which is not the domain's.
var errAnothers = fmt.Errorf("another program has it by now; end that one, or have it withdrawn: %w", errno.Busy)

// takeBackOwn takes a region back that the domain has had kept.
func (a *Attached) takeBackOwn(ctx context.Context, r *share.Region) error {
	var told share.Region
	err := a.Call(ctx, share.CallTakeBack, r.Name, &told)
	if err == nil && (told.Key != r.Key || told.Incarnation != r.Incarnation) {
		err = fmt.Errorf("region %q: %w", r.Name, errAnothers)
		a.EndTalk() // which leaves it to whom it belongs
	}
	return err
}
