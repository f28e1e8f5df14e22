// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Network is a network of nodes in memory, which a switch joins: no interface, no
// privilege, no kernel, but otherwise all of xdpfab, as in a [Pipe]. It is for tests of
// programs. A test can crash and restart nodes, cut links, and make them lose packets,
// and so reach ErrPeerRestarted, ErrPeerSilent and ErrOutcomeUnknown. Set a short
// DomainAttr.GiveUp if a test waits until a silent peer is given up.
//
// Any number of goroutines may call its methods.
type Network struct {
	attr []DomainAttr
	ends []*node.PipeEnd

	mu     sync.Mutex
	nodes  []*Domain
	closed bool
}

// NewNetwork returns a network of n nodes, each with a domain. Pass no attributes for the
// defaults, one DomainAttr for all nodes, or one for each. Close ends the network.
func NewNetwork(n int, attr ...DomainAttr) (*Network, error) {
	switch {
	case n < 1 || n > node.MostPipes:
		return nil, errno.Refuse(ErrArgument, "xdpfab: network of %d nodes: want 1..%d", n, node.MostPipes)
	case len(attr) == 0:
		attr = make([]DomainAttr, 1)
	case len(attr) != 1 && len(attr) != n:
		return nil, errno.Refuse(ErrArgument, "xdpfab: network of %d nodes with %d attributes: want one for all, or "+
			"one for each", n, len(attr))
	}
	if len(attr) == 1 {
		attr = slices.Repeat(attr, n)
	}
	w := &Network{attr: attr, ends: node.NewSwitch(n)}
	for i := range n {
		d, err := w.boot(i)
		if err != nil {
			return nil, errno.Join(err, w.Close())
		}
		w.nodes = append(w.nodes, d)
	}
	return w, nil
}

// boot makes a domain for a node.
func (w *Network) boot(i int) (*Domain, error) {
	end := *w.ends[i] // a device has one domain
	d, err := node.DomainOn(&end, w.attr[i])
	if err != nil {
		return nil, err
	}
	return &Domain{Domain: d.(*fi.Domain)}, nil
}

// Node returns the present domain of node i, counted from 0. Peers dial the address that
// its Name returns. After a Crash it is the closed domain, until Restart. Node panics if
// the network has no node i.
func (w *Network) Node(i int) *Domain {
	if err := w.check(i); err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[i]
}

// Crash ends node i as the end of its process or a power cut does: no peer is told, and
// nothing that was sent to it arrives. The domain is closed with all that belongs to it.
// Goroutines that use the words of its services go on: those words stay, and no peer
// reaches them. Another crash of a dead node is no error.
func (w *Network) Crash(i int) error {
	if err := w.check(i); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.crash(i, "Network.Crash")
}

// crash is Crash under w.mu, by a method.
func (w *Network) crash(i int, by string) error {
	w.ends[i].Port.Unplug()
	return w.end(i, by+" has ended the domain on %s; Network.Restart returns a new one")
}

// end closes the domain of a node. Errors of what was on it say why, in a format for the
// node's address.
func (w *Network) end(i int, why string) error {
	n := calls.Of(w.nodes[i].Domain).Node()
	n.End.Set(errno.Refuse(ErrClosed, why, n.Label()))
	return w.nodes[i].CloseAll()
}

// Restart returns a new domain for node i, with the same address and attributes. If the
// node is not dead, Restart crashes it first. To its peers the node is then another
// process. It has no endpoints and no memory, until the program makes them again. The
// program can register memory that it has allocated itself (mr.Alloc, mr.File) once more:
// this stands for memory that outlives a process, such as a file.
//
// Peers learn of the restart when the node serves their endpoint again. The network's
// faults and partitions stay.
func (w *Network) Restart(i int) (*Domain, error) {
	if err := w.check(i); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errno.Refuse(ErrClosed, "xdpfab: restart of node %d: this program has closed the network: make "+
			"another one with NewNetwork", i)
	}
	if err := w.crash(i, "Network.Restart"); err != nil {
		return nil, err
	}
	w.ends[i].Port.Plug()
	d, err := w.boot(i)
	if err != nil {
		return nil, err
	}
	w.nodes[i] = d
	return d, nil
}

// SetFaults sets the faults of the packets that one node sends to another from now on.
// They add to those that Domain.SetFaults sets for all packets of a node.
func (w *Network) SetFaults(from, to int, f Faults) error {
	if err := errno.Join(w.check(from), w.check(to)); err != nil {
		return err
	}
	if err := port.Faults(f).Check(); err != nil {
		return errno.Refuse(ErrArgument, "xdpfab: %w", err)
	}
	if from == to {
		return errno.Refuse(ErrArgument, "xdpfab: faults of packets from node %d to itself, which no link carries: "+
			"want two nodes", from)
	}
	w.ends[from].Port.SetFaultsTo(w.ends[to].Port, port.Faults(f))
	return nil
}

// Partition cuts every link between the given nodes and the others, in both directions.
// Links that are cut already stay cut. Heal undoes it. Partition refuses all nodes, and
// none, which no link joins to others.
func (w *Network) Partition(nodes ...int) error {
	for _, i := range nodes {
		if err := w.check(i); err != nil {
			return err
		}
	}
	if err := w.partial(nodes); err != nil {
		return err
	}
	w.cut(true, func(i, j int) bool { return slices.Contains(nodes, i) != slices.Contains(nodes, j) })
	return nil
}

// partial refuses nodes beside which there are no others.
func (w *Network) partial(nodes []int) error {
	if w == nil || w.ends == nil {
		return none("Network", "NewNetwork")
	}
	in := map[int]bool{}
	for _, i := range nodes {
		in[i] = true
	}
	if n := len(in); n == 0 || n == len(w.ends) {
		return errno.Refuse(ErrArgument, "xdpfab: partition of nodes %v of a network of %d cuts no link: want some "+
			"of the nodes, and not all", nodes, len(w.ends))
	}
	return nil
}

// Heal joins all nodes again: it undoes every Partition. It does nothing for a nil
// Network.
func (w *Network) Heal() {
	if w != nil {
		w.cut(false, func(i, j int) bool { return true })
	}
}

// cut cuts links, or joins them.
func (w *Network) cut(cut bool, which func(i, j int) bool) {
	for i, from := range w.ends {
		for j, to := range w.ends {
			if i != j && which(i, j) {
				from.Port.Cut(to.Port, cut)
			}
		}
	}
}

// Close closes the domains of all nodes, with all that belongs to them. Closing twice is
// no error.
func (w *Network) Close() error {
	if w == nil || w.ends == nil {
		return none("Network", "NewNetwork")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	var errs []error
	for i := range w.nodes {
		errs = append(errs, w.end(i, "Network.Close has closed the domain on %s; make another network"))
	}
	return errno.Join(errs...)
}

// check refuses a number that no node has.
func (w *Network) check(i int) error {
	if w == nil || w.ends == nil {
		return none("Network", "NewNetwork")
	}
	if i < 0 || i >= len(w.ends) {
		return errno.Refuse(ErrArgument, "xdpfab: node %d of a network of %d: want 0..%d", i, len(w.ends),
			len(w.ends)-1)
	}
	return nil
}
