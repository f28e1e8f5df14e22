// SPDX-License-Identifier: Apache-2.0

//go:build linux

package residence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Store is where a domain's resident part comes from, or stays: a folder that outlives
// the process, or another process that has handed it over. A nil store is that of a
// domain whose resident part begins and ends with it.
type Store struct {
	Path    string             // empty for no folder
	Folder  *resident.Folder   // nil likewise, and until there is something to keep
	Life    uint64             // of what is pinned, which outlives processes; 0 for nothing
	Vacant  bool               // nothing is pinned yet: the first resident memory begins that
	Former  bool               // what is resident is that of a former process
	Found   *resident.Executor // over what was found; nil once the domain has it
	lost    []string           // regions that ended with the interface that they were of
	resumed bool               // the domain has taken back what it wants
	Handed  bool               // by another process, which could still go on with it until then
	Back    map[uint64]bool    // keys of the regions that the process before had, and the domain has again
}

// openStored opens an interface as a process before has left it in a folder, if it has.
func openStored(ctx context.Context, ifname, path string, o port.Options) (node.Device, *Store, error) {
	folder, err := resident.FindFolder(path)
	if err != nil {
		return nil, nil, &FolderError{err}
	}
	h := &Store{Path: path, Folder: folder, Back: map[uint64]bool{}}
	dev, err := h.open(ctx, ifname, o)
	if errors.Is(err, port.ErrEnded) {
		dev, err = h.openFresh(ctx, ifname, o)
	}
	if err != nil {
		if h.Folder != nil {
			err = errors.Join(err, h.Folder.Close())
		}
		return nil, nil, err
	}
	return dev, h, nil
}

// openFresh discards state whose interface ended, and then opens.
func (h *Store) openFresh(ctx context.Context, ifname string, o port.Options) (dev node.Device, err error) {
	all, _ := resident.List(h.Path) // what cannot be listed is lost all the same
	for _, l := range all {
		h.lost = append(h.lost, l.Regions...)
	}
	if err, h.Folder = errors.Join(h.Folder.Remove(), h.Folder.Close()), nil; err != nil {
		return nil, err
	}
	if h.Folder, err = resident.OpenFolder(h.Path); err != nil {
		return nil, err
	}
	return h.open(ctx, ifname, o)
}

// open opens the interface. What lacks a link, which is pinned last, was never in force.
func (h *Store) open(ctx context.Context, ifname string, o port.Options) (node.Device, error) {
	switch {
	case h.Folder == nil:
		h.Vacant = true
	case h.Folder.Whole():
		o.Adopt, o.Fits = h.Folder.State(), h.adopt
	default:
		if err := resident.Remove(h.Path); err != nil {
			return nil, err
		}
		h.Vacant = true
	}
	if h.Vacant {
		h.Life = node.NewLife()
	}
	i, err := port.Open(ctx, ifname, o)
	if x := h.Found; err != nil && x != nil {
		h.Found, h.Life, h.Former, err = nil, 0, false, errors.Join(err, x.Close())
	}
	if err != nil {
		return nil, h.explain(err)
	}
	return node.NetInterface{Interface: i}, nil
}

// adopt takes the state that was found, if the interface is as it was: see
// port.Options.Fits.
func (h *Store) adopt(i *port.Interface) error {
	sockets, counters := i.Program().Shared()
	x, err := resident.Adopt(h.Path, resident.Config{Sockets: sockets, Counters: counters,
		Frags: i.Program().Frags()})
	if err != nil {
		return err
	}
	n := x.Node()
	if err := n.Fits(i.Name(), i.MAC(), i.UDP()); err != nil {
		return errors.Join(err, x.Close())
	}
	h.Life, h.Former, h.Found = n.Life, true, x
	return nil
}

// Folder returns where what is resident outlives the process; empty if it does not.
func (h *Residence) Folder() string {
	if h.Store == nil {
		return ""
	}
	return h.Store.Path
}

// Lasting returns the life of what is to outlive the process; 0 for nothing. Peers are
// told from the beginning, though there may be nothing yet: they take a node that
// changes it for another one.
func (h *Store) Lasting() uint64 {
	if h == nil {
		return 0
	}
	return h.Life
}

// executor gives the domain what was found, or nil.
func (h *Store) executor() *resident.Executor {
	if h == nil {
		return nil
	}
	x := h.Found
	h.Found = nil
	return x
}

// Start puts the node's engines to work, or releases the node. life is that of the node
// whose place this one takes, paused until Resume; 0 for none.
func (h *Residence) Start(life uint64) error {
	h.n.Paused.Store(life != 0 || h.Store != nil)
	if err := h.n.Run(cmp.Or(life, node.NewLife()), h.Store.Lasting()); err != nil {
		return errors.Join(err, h.n.Release())
	}
	return nil
}

// SettleIn has a new node go on with what a former process left, if it has.
func (h *Residence) SettleIn() error {
	if h.Store != nil && len(h.Store.lost) > 0 {
		h.n.Log(slog.LevelWarn, "resident regions that a former process left are lost: they were of an interface "+
			"that is gone", slog.Any("regions", h.Store.lost), slog.String("folder", h.Store.Path))
	}
	if h.Store != nil && h.Store.Vacant {
		return nil
	}
	h.n.Mu.Lock()
	defer h.n.Mu.Unlock()
	if err := h.reside(); err != nil {
		return fmt.Errorf("xdpfab: resident regions that outlive the process: %w", err)
	}
	if at := h.Store; !at.Handed {
		h.n.Log(slog.LevelInfo, "going on with what a former process has left", slog.String("folder", at.Path))
	}
	return nil
}

// keep has what is resident outlive the process from here on, if that is wanted. When it
// fails, nothing does. What was found outlives it already; keep writes down whether it
// may have UDP from here on.
func (h *Store) keep(dev node.NetInterface, x *resident.Executor) (err error) {
	switch {
	case h == nil:
		return nil
	case !h.Vacant:
		return x.NoteUDP(dev.UDP())
	}
	if h.Folder == nil {
		if h.Folder, err = resident.OpenFolder(h.Path); err != nil {
			return err
		}
	}
	if h.Folder.Whole() {
		return fmt.Errorf("%s has what a process has left that was on another interface: want another folder, or "+
			"remove that: `xdpfab resident remove %s`", h.Path, h.Path)
	}
	if err = resident.Remove(h.Path); err == nil {
		err = x.Pin(h.Path, resident.Node{Life: h.Life, MAC: dev.MAC(), Interface: dev.Name(), UDP: dev.UDP()})
	}
	if err == nil {
		err = dev.Program().Pin(h.Folder.State()) // last: from here on it outlives the process
	}
	if err != nil {
		return fmt.Errorf("resident regions that outlive the process: %w", errors.Join(err, h.vacate(dev)))
	}
	h.Vacant = false
	return nil
}

// vacate undoes keep.
func (h *Store) vacate(dev node.NetInterface) error {
	if h == nil || h.Former || h.Folder == nil {
		return nil
	}
	h.Vacant = true
	return errors.Join(dev.Program().Unpin(), resident.Remove(h.Path))
}

// describe returns what a registration is to the program, as far as its options say.
func (h *Residence) describe(o *mr.Options) resident.Region {
	var key *session.Key
	if len(o.AuthKey) > 0 {
		key = session.NewKey(o.AuthKey, 0)
	}
	return resident.Region{Auth: h.Executor.Digest(key), Access: uint32(o.Access),
		Name: resident.Name{Name: o.Name, Virtual: o.Virtual}}
}

// left makes a registration the one that a former process left, if that was the same,
// and reports whether it was.
func (h *Residence) left(m *mr.Memory, o *mr.Options) (bool, error) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	of := h.memories[m]
	if h.Store == nil || h.Store.resumed || of == nil || !of.Found() {
		return false, nil
	}
	regions, err := h.Executor.Regions()
	if err != nil {
		return false, err
	}
	as := h.describe(o)
	as.Name.Memory = of.Name()
	if as.Length = o.Length; o.Length == 0 {
		as.Length = len(of.Bytes())
	}
	for key, r := range regions {
		_, taken := (*h.Keys.Load())[key]
		as.Key, as.Base, as.Incarnation = key, r.Base, r.Incarnation
		if taken || r != as || !h.Executor.OnMemory(key, of) || o.Key != nil && *o.Key != key ||
			o.Incarnation != 0 && o.Incarnation != r.Incarnation {
			continue
		}
		o.Key, o.Incarnation = &key, r.Incarnation
		if o.Virtual {
			o.Address = r.Base // peers go on with the addresses that they have
		}
		return true, nil
	}
	return false, nil
}

// GoOn takes back the sessions that a former process left, and ends what else it has
// left that this one does not want. The engines are paused.
func (h *Residence) GoOn() {
	h.Mu.Lock()
	x, at := h.Executor, h.Store
	if at == nil || at.resumed {
		h.Mu.Unlock()
		return
	}
	at.resumed = true
	if x == nil {
		h.Mu.Unlock()
		return
	}
	h.tellEnding()
	err := x.Sweep(*h.Keys.Load())
	h.Mu.Unlock()
	var sessions []resident.LeftSession
	if at.Handed { // the engines have the sessions already
		err = errors.Join(err, x.DropOthers())
	} else {
		var bad error
		sessions, bad = x.Sessions()
		err = errors.Join(err, bad)
	}
	if err != nil {
		h.n.Log(slog.LevelWarn, "state that a former process has left is not all in order", slog.Any("cause", err))
	}
	queues := make([][]engine.LeftSession, len(h.n.Steppers))
	lost := func(l engine.LeftSession, err error) {
		h.n.Log(slog.LevelWarn, "session that a former process has left ends",
			slog.Any("cause", errors.Join(err, x.Drop(uint32(l.ID)))))
	}
	for _, s := range sessions {
		l := engine.LeftSession{ID: wire.SessionID(s.ID), Memo: s.Memo, Live: s.Live, Served: inProgram}
		if q := int(l.ID.Queue()); q < len(queues) {
			queues[q] = append(queues[q], l)
		} else {
			lost(l, fmt.Errorf("it is of queue %d, and there are %d", q, len(queues)))
		}
	}
	for q, st := range h.n.Steppers {
		st.Call(func() { st.Eng.Adopt(queues[q], lost) })
	}
}

// Detach is called when the domain begins to end. If the domain leaves its state, it
// leaves it as a death would, and the engines no longer speak of it; otherwise the state
// ends with the process from here on.
func (h *Residence) Detach() {
	if h.stays() {
		for _, st := range h.n.Steppers {
			st.Call(st.Eng.Detach)
		}
		h.Mu.Lock()
		h.Leaving.Store(true)
		h.Mu.Unlock()
	} else if err := h.unpin(); err != nil {
		h.n.Log(slog.LevelWarn, "resident state may be left behind", slog.Any("cause", err))
	}
}

// stays reports whether a domain that begins to end leaves what is resident as if the
// process had died.
func (h *Residence) stays() bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	at := h.Store
	if at == nil || h.Leaving.Load() {
		return false
	}
	return at.left() || at.resumed && h.Executor != nil && h.n.Config.ResidentLeave && !errors.Is(h.n.End.Returned(),
		errno.InterfaceLost)
}

// unpin has what is resident end with the process, unless it is handed over.
func (h *Residence) unpin() error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Store == nil || h.Leaving.Load() {
		return nil
	}
	return h.n.Dev.(node.NetInterface).Program().Unpin()
}

// left reports whether the state still belongs to the former process.
func (h *Store) left() bool { return h.Former && !h.resumed }

// giveUp gives the store up, when the domain has given up all else, and removes what is
// not left. The lock is held.
func (h *Residence) giveUp() error {
	at := h.Store
	if at == nil {
		return nil
	}
	var err error
	if at.Folder != nil && !at.left() && !h.Leaving.Load() {
		err = at.Folder.Remove()
	}
	return errors.Join(err, at.Close())
}

// Close gives the store up, and leaves its state in place.
func (h *Store) Close() (err error) {
	if h == nil {
		return nil
	}
	if h.Found != nil { // the domain has never begun
		err = h.Found.Close()
	}
	if h.Folder != nil {
		err = errors.Join(err, h.Folder.Close())
	}
	return err
}
