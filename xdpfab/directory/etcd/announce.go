// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/xdpfab/xdpfab/xdpfab/directory"
)

// TTL is the time for which the entry of a node that has died stays: etcd ends its lease.
const TTL = 10 * time.Second

// Announce implements directory.Announcer. While etcd is away it tries again each second.
//
// A name belongs to one node. If another one has announced it, the two having no address
// in common, this node is left out, with a warning, until that entry has gone.
func (s *Source) Announce(ctx context.Context, updates <-chan directory.Node) error {
	a := announcer{source: s, updates: updates}
	select {
	case a.node = <-updates:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		err := a.hold(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.complain(err)
		if !pause(ctx, retryPause) {
			return ctx.Err()
		}
	}
}

// Announced reports whether the entry that Announce keeps is in the directory, as far as
// this process knows: a server that dies is noticed after TTL at the latest.
func (s *Source) Announced() bool { return s.announced.Load() }

// announcer keeps one node's entry.
type announcer struct {
	source  *Source
	updates <-chan directory.Node
	node    directory.Node // as it is now
	said    string         // the error of the last complaint, so that each is made once
}

// errTaken: another node has the name.
var errTaken = errors.New("another node has announced this name")

func (a *announcer) complain(err error) {
	if text := err.Error(); text != a.said {
		a.said = text
		a.source.log.Warn("this node is not in the directory, and tries again", "directory", a.source.name,
			"node", a.node.Name, "cause", a.source.explain(err))
	}
}

// hold announces the node under a lease, and keeps it until ctx ends, which removes the
// entry, or the lease is lost.
func (a *announcer) hold(ctx context.Context) error {
	s := a.source
	lease, err := a.grant(ctx)
	if err != nil {
		return err
	}
	defer a.release(ctx, lease)
	keeping, end := context.WithCancel(ctx) // the lease is kept no longer than this call lasts
	defer end()
	kept, err := s.client.KeepAlive(keeping, lease)
	if err != nil {
		return err
	}
	if err := a.put(ctx, lease); err != nil {
		return err
	}
	a.said = ""
	s.announced.Store(true)
	defer s.announced.Store(false)
	s.log.Info("this node is in the directory", "directory", s.name, "node", a.node.Name, "entry", a.node.Text())
	for {
		select {
		case _, ok := <-kept:
			if !ok {
				return fmt.Errorf("the lease was lost: etcd was not heard for %v", TTL)
			}
		case a.node = <-a.updates:
			if err := a.put(ctx, lease); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *announcer) grant(ctx context.Context) (clientv3.LeaseID, error) {
	ctx, end := context.WithTimeout(ctx, callLimit)
	defer end()
	l, err := a.source.client.Grant(ctx, int64(TTL/time.Second))
	if err != nil {
		return 0, err
	}
	return l.ID, nil
}

// release ends the lease, and the entry with it, unless another process has the entry
// now, or is about to.
func (a *announcer) release(ctx context.Context, lease clientv3.LeaseID) {
	if errors.Is(context.Cause(ctx), directory.ErrReplaced) {
		return
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer end()
	_, _ = a.source.client.Revoke(ctx, lease) // otherwise it ends by itself
}

// put writes the entry, if nobody else's is there.
func (a *announcer) put(ctx context.Context, lease clientv3.LeaseID) error {
	ctx, end := context.WithTimeout(ctx, callLimit)
	defer end()
	s, key := a.source, a.source.prefix+a.node.Name
	for range 10 { // each time another node was faster
		got, err := s.client.Get(ctx, key)
		if err != nil {
			return err
		}
		revision := int64(0) // of no entry
		if len(got.Kvs) > 0 {
			revision = got.Kvs[0].ModRevision
			if there, err := directory.Parse(a.node.Name, string(got.Kvs[0].Value)); err == nil && !a.same(there) {
				return fmt.Errorf("%w, at %v: want a name of its own for each node (--node)", errTaken, there.Addrs)
			}
		}
		done, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
			Then(clientv3.OpPut(key, a.node.Text(), clientv3.WithLease(lease))).Commit()
		if err != nil || done.Succeeded {
			return err
		}
	}
	return errTaken
}

// same reports whether an entry is of this node: of a process before this one, as a rule.
func (a *announcer) same(there directory.Node) bool {
	return slices.ContainsFunc(there.Addrs, func(addr string) bool { return slices.Contains(a.node.Addrs, addr) })
}
