// SPDX-License-Identifier: Apache-2.0

// Package directory finds the nodes of a cluster by their names, and the nodes that
// publish a region by the region's name.
//
// A [Source] has the entries: a plain file ([File]), which anybody may write, or etcd
// (package directory/etcd), to which daemons announce themselves (xdpfabd --directory)
// under leases that end with them. A [Directory] holds a copy of all entries and follows
// the source. So a look-up sends nothing, and works while the source is away, with the
// entries that were last seen; [Directory.Stale] says since when.
//
// An entry is a hint where to dial, no promise that the node is there. Each operation
// reports its own outcome.
package directory

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Errors of look-ups.
var (
	// ErrNoNode: no entry has this name, or publishes this region.
	ErrNoNode = errors.New("the directory has no such node")
	// ErrAmbiguous: several nodes publish the region, so its name alone does not say
	// which one is meant. Look for the region at one of the nodes: Cluster.Dial takes the
	// node's name.
	ErrAmbiguous = errors.New("several nodes publish the region")
)

// Source has the entries of a cluster's nodes.
type Source interface {
	// Watch reports all entries as soon as they are known, and again after each change.
	// It reports the failure while the source cannot be read, and goes on. It returns
	// when ctx ends, with its error, or when there is nothing to wait for, with the
	// reason: the source can never be read, or is a file that is missing at first. It
	// calls report from one goroutine at a time.
	Watch(ctx context.Context, report func([]Node, error)) error
	// String names the source in errors: "etcd://10.0.0.1:2379/xdpfab".
	String() string
}

// Directory holds the entries of a source, and follows it. Its methods may be called by
// any goroutine. A nil Directory, or a zero value, has no entries.
type Directory struct {
	source Source
	end    context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	nodes   map[string]Node
	known   bool          // entries have been read once
	failure error         // of the source, at present
	since   time.Time     // of failure
	changed chan struct{} // closed at the next change
}

// Open reads a source, and follows it until Close. A file that is missing or wrong fails
// at once. For etcd Open waits until it has answered, and fails when ctx ends first: the
// error wraps what etcd is waited for, and the cause of ctx.
func Open(ctx context.Context, s Source) (*Directory, error) {
	if err := errno.NoContext(ctx); err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errno.Refuse(errno.Argument,
			"xdpfab: directory without a source: want File, or one of package etcd")
	}
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	d := &Directory{source: s, end: end, ended: make(chan struct{}), changed: make(chan struct{})}
	go func() {
		defer close(d.ended)
		if err := s.Watch(watching, d.take); watching.Err() == nil {
			d.take(nil, err)
		}
	}()
	if err := d.wait(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// errSilent means that the source has reported neither entries nor a failure.
var errSilent = errors.New("it has not answered yet: is it there, and reachable?")

// wait waits until the entries have been read once.
func (d *Directory) wait(ctx context.Context) error {
	for {
		d.mu.Lock()
		known, failure, changed := d.known, d.failure, d.changed
		d.mu.Unlock()
		if known {
			return nil
		}
		select {
		case <-ctx.Done():
			if failure == nil {
				failure = errSilent
			}
			return failed("directory %v: %w: %w", d.source, failure, context.Cause(ctx))
		case <-d.ended:
			d.mu.Lock()
			defer d.mu.Unlock()
			return failed("directory %v: %w", d.source, d.failure)
		case <-changed:
		}
	}
}

// Close ends following the source. The entries can still be looked up.
func (d *Directory) Close() {
	if d.none() != nil {
		return
	}
	d.end()
	<-d.ended
}

// none is the error of a Directory that is nil or a zero value, which follows nothing.
// Most often the program has not looked at the error of Open.
func (d *Directory) none() error {
	if d == nil || d.source == nil {
		return errno.Refuse(errno.Closed,
			"xdpfab: the Directory is nil or a zero value: want one of Open, whose error says why there is none")
	}
	return nil
}

// take is what the source reports to.
func (d *Directory) take(list []Node, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		if d.failure == nil {
			d.since = time.Now()
		}
		d.failure = err
	} else {
		d.nodes, d.known, d.failure = make(map[string]Node, len(list)), true, nil
		for _, n := range list {
			d.nodes[n.Name] = n.clone()
		}
	}
	close(d.changed)
	d.changed = make(chan struct{})
}

// Stale returns nil if the entries are the source's own, as far as it has told of them,
// or else why it cannot be read, and since when.
func (d *Directory) Stale() error {
	if err := d.none(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil {
		return nil
	}
	return failed("directory %v has not been read since %s: %w", d.source, d.since.Format(time.TimeOnly), d.failure)
}

// Changed returns a channel that is closed when the entries, or the source's state,
// change for the next time.
func (d *Directory) Changed() <-chan struct{} {
	if d.none() != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// Nodes returns all entries, in the order of their names.
func (d *Directory) Nodes() []Node {
	if d.none() != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Node, 0, len(d.nodes))
	for _, n := range d.nodes {
		list = append(list, n.clone())
	}
	slices.SortFunc(list, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Node returns the entry with a name. It fails with ErrNoNode, and then names those there
// are, if they are few.
func (d *Directory) Node(name string) (Node, error) {
	if err := d.none(); err != nil {
		return Node{}, err
	}
	d.mu.Lock()
	n, ok := d.nodes[name]
	d.mu.Unlock()
	if !ok {
		return Node{}, errno.Refuse(ErrNoNode, "xdpfab: node %q: %v has none of this name%s", name, d.source,
			d.named(name))
	}
	return n.clone(), nil
}

// Home returns the one node that publishes a region. It fails with ErrNoNode if there is
// none, and with ErrAmbiguous, naming them, if there are several.
func (d *Directory) Home(region string) (Node, error) {
	if err := d.none(); err != nil {
		return Node{}, err
	}
	var homes []Node
	var names []string
	for _, n := range d.Nodes() {
		if _, ok := slices.BinarySearch(n.Regions, region); ok {
			homes, names = append(homes, n), append(names, n.Name)
		}
	}
	switch len(homes) {
	case 1:
		return homes[0], nil
	case 0:
		return Node{}, errno.Refuse(ErrNoNode, "xdpfab: region %q: no node of %v publishes it%s", region, d.source,
			d.published(region))
	}
	return Node{}, failed("region %q: %w: %s: want the node's name, too (Cluster.Dial)", region, ErrAmbiguous,
		strings.Join(names, ", "))
}

// published says which regions there are in place of one that is not, for errors.
func (d *Directory) published(region string) string {
	var names []string
	for _, n := range d.Nodes() {
		for _, r := range n.Regions {
			names = append(names, strconv.Quote(r))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	const most = 20
	text := errno.DidYouMean(strconv.Quote(region), names) + ": the nodes have " + errno.List(names, most)
	if len(names) == 0 {
		text = ": the nodes publish none"
	}
	if err := d.Stale(); err != nil {
		text += "; " + err.Error()
	}
	return text
}

// named says which names there are in place of one that is not, for errors.
func (d *Directory) named(name string) string {
	var names []string
	for _, n := range d.Nodes() {
		names = append(names, n.Name)
	}
	const most = 8
	text := errno.DidYouMean(name, names) + ": it has " + errno.List(names, most)
	if len(names) == 0 {
		text = ": it has no nodes"
	}
	if err := d.Stale(); err != nil {
		text += "; " + err.Error()
	}
	return text
}
