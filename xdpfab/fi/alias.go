// SPDX-License-Identifier: Apache-2.0

package fi

import "fmt"

// Alias returns another handle for the endpoint, with default flags of its own, so that
// parts of a program can have completions of different kinds (fi_ep_alias, FI_ALIAS).
// With FlagDefaults they are those that this handle has now. All else is shared:
// sessions, the order of operations, queues and counters, and the flags of receives.
// Completions and events name the handle that NewEndpoint returned. The endpoint cannot
// be closed as long as it has aliases.
func (ep *Endpoint) Alias(flags OpFlags) (*Endpoint, error) {
	if flags == FlagDefaults {
		flags = ep.OpFlags()
	}
	a := &Endpoint{endpoint: ep.endpoint}
	if err := a.SetOpFlags(flags); err != nil {
		return nil, err
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	switch {
	case ep.phase.Load() >= draining:
		return nil, ep.unready()
	case ep.ended.Load():
		return nil, ep.errEnded()
	}
	ep.aliases++
	return a, nil
}

func (ep *Endpoint) isAlias() bool { return ep != &ep.handle }

// endAlias is Close of an alias.
func (ep *Endpoint) endAlias() error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if !ep.ended.Swap(true) {
		ep.aliases--
	}
	return nil
}

func (ep *Endpoint) errEnded() error {
	return fmt.Errorf("xdpfab: alias of endpoint %d: %w", ep.number, ErrClosed)
}
