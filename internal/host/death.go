// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"sync"

	"github.com/xdpfab/xdpfab/internal/death"
)

// watchDeath ends the conversation when the program has died: a child of it may have the
// socket, too. Without an answer of the kernel, the end of the conversation has to do.
func (g *Guest) watchDeath() (stop func()) {
	end, err := g.talk.Death()
	if errors.Is(err, death.ErrDied) {
		g.endTalk()
	}
	if err != nil {
		return func() {}
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		if end.Wait(0) == nil {
			g.endTalk()
		}
	})
	return func() {
		_ = end.Close()
		watching.Wait()
	}
}
