// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"time"

	"github.com/xdpfab/xdpfab/internal/share"
)

// unrestored is a guest that was handed over and cannot go on here. The former process
// may have to go on with it until Resume, so it is told nothing before.
type unrestored struct {
	info GuestInfo
	conn *net.UnixConn // its conversation; nil for none
	held heldState     // nil for nothing
	told func(error)   // see AdmitGuest; nil for none
	why  error
}

// noteUnrestored records a guest that cannot continue. Its kept regions continue without
// it.
func (h *Handover) noteUnrestored(host *Host, s *guestState, told func(error), why error) {
	x := &unrestored{info: s.Info, told: told, why: why, held: s.held()}
	x.conn, _ = h.conn(s.Talk) // without, it learns nothing but its end
	host.Mu.Lock()
	host.Tenancy.unrestored = append(host.Tenancy.unrestored, x)
	host.Mu.Unlock()
	if left := s.leaves(); left != nil {
		h.restoreKept(host, left)
	}
}

// leaves returns what the guest would leave if it ended: what is kept, and the endpoints
// that serve; nil for nothing. See guest.endOrKeep.
func (s *guestState) leaves() *keptState {
	if s.Attached == nil {
		return nil
	}
	k := &keptState{Info: s.Info, Endpoints: s.Attached.Left}
	for _, r := range s.Attached.Regions {
		if r.Kept != nil {
			r.Kept = &keptMark{Rule: r.Kept.Rule}
			k.Regions = append(k.Regions, r)
		}
	}
	if k.Regions == nil {
		return nil
	}
	for _, ep := range s.Attached.Endpoints {
		if bound := ep.As.Connected || ep.As.Block != nil; ep.Serve.On && !bound {
			k.Endpoints = append(k.Endpoints, leftState{ep.Serve.Endpoint, ep.As.Key})
		}
	}
	return k
}

// withdrawKept gives up what is kept of a guest.
func (g *Guest) withdrawKept() {
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	maps.DeleteFunc(g.h.Tenancy.Kept, func(_ KeptID, k *kept) bool { return k.Holder == g })
}

// evict tells the guest why it ends, if it reads that, and takes its queue back.
func (x *unrestored) evict(host *Host) {
	if x.told != nil {
		x.told(x.why)
		x.told = nil
	} else {
		host.n.Log(slog.LevelWarn, "guest that was handed over is evicted",
			slog.Int("pid", x.info.PID), slog.Uint64("uid", uint64(x.info.UID)), slog.Any("cause", x.why))
	}
	if x.held != nil {
		x.held.giveBack(host)
	}
	if x.conn == nil {
		return
	}
	talk := share.NewTalk(x.conn)
	talk.Until(time.Now().Add(reasonTimeout))
	err := fmt.Errorf("xdpfab: the daemon that has taken over turns this program out: %w", x.why)
	_ = talk.Send(failure(0, err))
	x.leaveToFormer()
}

// leaveToFormer leaves the guest to the former process, or to itself.
func (x *unrestored) leaveToFormer() {
	if x.told != nil {
		x.told(nil)
		x.told = nil
	}
	if x.conn != nil {
		_ = x.conn.Close()
	}
}
