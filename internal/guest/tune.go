// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
)

// Of the attributes of sessions, a guest has a give-up time of its own. The others are
// those of the host, whose engine has the sessions: other values are refused.

// Tune tells the host of the attributes, and fills in those in force.
func (a *Attached) Tune(attr *node.Tuning) error {
	a.giveUp = attr.GiveUp
	if attr.DefaultGiveUp {
		a.giveUp = 0
	}
	host, err := a.tuneHost(context.Background())
	if err != nil {
		return err
	}
	if attr.DefaultGiveUp {
		attr.GiveUp = host.GiveUp
	}
	if attr.DefaultIdleRetire {
		attr.IdleRetire = host.IdleRetire
	}
	for _, x := range []struct {
		name      string
		own, host any
		other     bool
	}{
		{"Window", attr.Window, host.Window, attr.Window != 0 && attr.Window != host.Window},
		{"RTOMin", attr.RTOMin, host.RTOMin, attr.RTOMin != 0 && attr.RTOMin != host.RTOMin},
		{"BaseRTT", attr.BaseRTT, host.BaseRTT, attr.BaseRTT != 0 && attr.BaseRTT != host.BaseRTT},
		{"IdleRetire", attr.IdleRetire, host.IdleRetire, attr.IdleRetire != host.IdleRetire},
	} {
		if x.other {
			return errno.Refuse(errno.NotImplemented,
				"xdpfab: %s of %v through the daemon of %s, whose sessions have %v: leave it out, have "+
					"the daemon's changed, or want an interface of your own (AttachNever)",
				x.name, x.own, a.info.Name, x.host)
		}
	}
	a.waits = attr.GiveUp
	attr.Window, attr.RTOMin, attr.BaseRTT = host.Window, host.RTOMin, host.BaseRTT
	return nil
}

// tuneHost tells a host of the give-up time.
func (a *Attached) tuneHost(ctx context.Context) (host share.Tune, err error) {
	return host, a.Call(ctx, share.CallTune, share.Tune{GiveUp: a.giveUp}, &host)
}
