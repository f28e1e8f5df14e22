// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Alias is another handle for an endpoint, with flags of its own for FlagDefaults to
// stand for, so that parts of a program can have completions of different kinds. All else
// is the endpoint's: sessions, the order of operations, queues and counters (fi_ep_alias,
// FI_ALIAS).
type Alias struct {
	ep      *Endpoint
	opFlags atomic.Uint32 // OpFlags
	closed  atomic.Bool   // written under ep.mu
}

// Alias makes an alias of the endpoint, whose default flags are those given; with
// FlagDefaults they are those that the endpoint has now. The endpoint cannot be closed as
// long as it has aliases.
func (ep *Endpoint) Alias(flags OpFlags) (*Alias, error) {
	if flags == FlagDefaults {
		flags = ep.OpFlags()
	}
	a := &Alias{ep: ep}
	if err := a.SetOpFlags(flags); err != nil {
		return nil, err
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.phase.Load() >= draining {
		return nil, ep.unready()
	}
	ep.aliases++
	return a, nil
}

// Endpoint returns the endpoint that the alias stands for, which completions name.
func (a *Alias) Endpoint() *Endpoint { return a.ep }

// SetOpFlags sets what FlagDefaults stands for in posts by the alias from now on; see
// Endpoint.SetOpFlags.
func (a *Alias) SetOpFlags(flags OpFlags) error {
	if err := flags.check("default flags", defaultFlags); err != nil {
		return err
	}
	a.opFlags.Store(uint32(flags))
	return nil
}

// OpFlags returns what FlagDefaults stands for in posts by the alias.
func (a *Alias) OpFlags() OpFlags { return OpFlags(a.opFlags.Load()) }

// Atomic is Endpoint.Atomic.
func (a *Alias) Atomic(m *Msg, flags OpFlags) error {
	return a.post(wire.VerbAtomic, m, flags, 0)
}

// FetchAtomic is Endpoint.FetchAtomic.
func (a *Alias) FetchAtomic(m *Msg, flags OpFlags) error {
	return a.post(wire.VerbFetch, m, flags, 0)
}

// CompareAtomic is Endpoint.CompareAtomic.
func (a *Alias) CompareAtomic(m *Msg, flags OpFlags) error {
	return a.post(wire.VerbCompare, m, flags, 0)
}

// InjectAtomic is Endpoint.InjectAtomic.
func (a *Alias) InjectAtomic(m *Msg) error {
	return a.post(wire.VerbAtomic, m, FlagInject, silent)
}

// Read is Endpoint.Read.
func (a *Alias) Read(x *RMA, flags OpFlags) error { return a.transfer(wire.VerbRead, x, flags, 0) }

// Write is Endpoint.Write.
func (a *Alias) Write(x *RMA, flags OpFlags) error { return a.transfer(wire.VerbWrite, x, flags, 0) }

// InjectWrite is Endpoint.InjectWrite.
func (a *Alias) InjectWrite(x *RMA) error {
	return a.transfer(wire.VerbWrite, x, FlagInject, silent)
}

// InjectWriteData is Endpoint.InjectWriteData.
func (a *Alias) InjectWriteData(x *RMA) error {
	return a.transfer(wire.VerbWrite, x, FlagInject|FlagRemoteCQData, silent)
}

// Send is Endpoint.Send.
func (a *Alias) Send(m *Message, flags OpFlags) error { return a.send(wire.VerbSend, m, flags, 0) }

// SendTagged is Endpoint.SendTagged.
func (a *Alias) SendTagged(m *Message, flags OpFlags) error {
	return a.send(wire.VerbTagged, m, flags, 0)
}

// InjectSend is Endpoint.InjectSend.
func (a *Alias) InjectSend(m *Message) error { return a.send(wire.VerbSend, m, FlagInject, silent) }

// InjectSendData is Endpoint.InjectSendData.
func (a *Alias) InjectSendData(m *Message) error {
	return a.send(wire.VerbSend, m, FlagInject|FlagRemoteCQData, silent)
}

// InjectTagged is Endpoint.InjectTagged.
func (a *Alias) InjectTagged(m *Message) error {
	return a.send(wire.VerbTagged, m, FlagInject, silent)
}

// InjectTaggedData is Endpoint.InjectTaggedData.
func (a *Alias) InjectTaggedData(m *Message) error {
	return a.send(wire.VerbTagged, m, FlagInject|FlagRemoteCQData, silent)
}

// Receive is Endpoint.Receive. FlagDefaults stands for the endpoint's ReceiveFlags.
func (a *Alias) Receive(r *Receive, flags OpFlags) error {
	if err := a.ended(); err != nil {
		return err
	}
	return a.ep.Receive(r, flags)
}

// ReceiveTagged is Endpoint.ReceiveTagged; see Receive.
func (a *Alias) ReceiveTagged(r *Receive, flags OpFlags) error {
	if err := a.ended(); err != nil {
		return err
	}
	return a.ep.ReceiveTagged(r, flags)
}

// Cancel is Endpoint.Cancel.
func (a *Alias) Cancel(context any) error {
	if err := a.ended(); err != nil {
		return err
	}
	return a.ep.Cancel(context)
}

func (a *Alias) send(verb wire.Verb, m *Message, flags OpFlags, cookie uint64) error {
	flags, err := a.flags(flags)
	if err != nil {
		return err
	}
	return a.ep.send(verb, m, flags, cookie)
}

func (a *Alias) transfer(verb wire.Verb, x *RMA, flags OpFlags, cookie uint64) error {
	flags, err := a.flags(flags)
	if err != nil {
		return err
	}
	return a.ep.transfer(verb, x, flags, cookie)
}

func (a *Alias) post(verb wire.Verb, m *Msg, flags OpFlags, cookie uint64) error {
	flags, err := a.flags(flags)
	if err != nil {
		return err
	}
	return a.ep.post(verb, m, flags, cookie)
}

// flags returns the flags of a post by the alias.
func (a *Alias) flags(flags OpFlags) (OpFlags, error) {
	if err := a.ended(); err != nil {
		return 0, err
	}
	if flags&FlagDefaults != 0 {
		flags = flags&^FlagDefaults | a.OpFlags()
	}
	return flags, nil
}

func (a *Alias) ended() error {
	if a.closed.Load() {
		return fmt.Errorf("xdpfab: alias of endpoint %d: %w", a.ep.number, ErrClosed)
	}
	return nil
}

// Close ends the use of the alias. Operations that were posted by it continue. Closing
// twice is no error.
func (a *Alias) Close() error {
	a.ep.mu.Lock()
	defer a.ep.mu.Unlock()
	if !a.closed.Swap(true) {
		a.ep.aliases--
	}
	return nil
}
