// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "github.com/xdpfab/xdpfab/mr"

// These methods of fi.Domain are here for a Domain that is nil, since Open has failed: a
// deferred CloseAll must not hide the error of Open.

// over is closed: a domain that is none has ended.
var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Close frees the interface. It fails with ErrBusy, and names them, as long as objects of
// the domain are open. Closing twice is no error. See [fi.Domain.Close].
func (d *Domain) Close() error {
	if err := d.there(); err != nil {
		return err
	}
	return d.Domain.Close()
}

// CloseAll closes the domain and everything that belongs to it. Closing twice is no
// error. The memory of its services is unmapped, so no goroutine of the program may use
// its words or bytes any more: see [Service]. See [fi.Domain.CloseAll].
func (d *Domain) CloseAll() error {
	if err := d.there(); err != nil {
		return err
	}
	return d.Domain.CloseAll()
}

// Done is closed when the domain has ended: it was closed, or the interface can no longer
// be used. Err then says which. Calls and operations that wait fail with the cause.
func (d *Domain) Done() <-chan struct{} {
	if d.there() != nil {
		return over
	}
	return d.Domain.Done()
}

// Err is nil until Done is closed. Then it is the cause: it wraps ErrClosed after Close,
// or ErrInterfaceLost. A domain that ended by itself has still to be closed.
func (d *Domain) Err() error {
	if err := d.there(); err != nil {
		return err
	}
	return d.Domain.Err()
}

// Name returns the address of the domain's endpoint of the given number, as peers pass it
// to Dial. See [fi.Domain.Name].
func (d *Domain) Name(endpoint uint16) string {
	if d.there() != nil {
		return ""
	}
	return d.Domain.Name(endpoint)
}

// NewRegion allocates zeroed memory of size bytes, and registers it under a name with all
// rights. It is freed when the domain closes. See [fi.Domain.NewRegion].
func (d *Domain) NewRegion(name string, size int) (*mr.Region, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	return d.Domain.NewRegion(name, size)
}

// Register lets peers address memory that the program has. See [fi.Domain.Register], also
// for what peers cannot do behind a daemon to memory that is in no memfd.
func (d *Domain) Register(m *mr.Memory, o mr.Options) (*mr.Region, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	return d.Domain.Register(m, o)
}

// SetFaults sets the faults of the packets that the domain sends from now on, for tests.
// It fails with ErrNotImplemented unless the domain is one of a Pipe or a Network, or has
// TransportUDP, where packets cannot be delayed.
func (d *Domain) SetFaults(f Faults) error {
	if err := d.there(); err != nil {
		return err
	}
	return d.Domain.SetFaults(f)
}

// Stats returns every statistic of the domain by name. See [fi.Domain.Stats].
func (d *Domain) Stats() (map[string]uint64, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	return d.Domain.Stats()
}
