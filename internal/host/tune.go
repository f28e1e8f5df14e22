// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/share"
)

// tune answers the call of a guest that has a give-up time of its own.
func (g *Guest) tune(_ context.Context, t share.Tune) (share.Tune, error) {
	if t.GiveUp < 0 || t.GiveUp > session.MaxGiveUp {
		return t, errno.Refuse(errno.NotImplemented,
			"give-up time of %v: want at most %v, or 0 for the host's", t.GiveUp,
			session.MaxGiveUp)
	}
	g.giveUp.Store(int64(t.GiveUp))
	a := g.h.n.Config
	c, err := session.Config{Window: a.Window, GiveUp: a.GiveUp, RTOMin: a.RTOMin, BaseRTT: a.BaseRTT,
		IdleRetire: a.IdleRetire}.WithDefaults()
	return share.Tune{GiveUp: c.GiveUp, Window: c.Window, RTOMin: c.RTOMin, BaseRTT: c.BaseRTT,
		IdleRetire: c.IdleRetire}, err
}

// givesUp is the guest's give-up time.
func (g *Guest) givesUp() time.Duration {
	return cmp.Or(time.Duration(g.giveUp.Load()), g.h.n.Config.GiveUp)
}
