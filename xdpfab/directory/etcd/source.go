// SPDX-License-Identifier: Apache-2.0

// Package etcd keeps the entries of package directory in etcd (version 3.4 or later), so
// that the nodes of a cluster announce themselves, and are forgotten when they die.
//
// An entry is one key below the prefix, "<prefix>/nodes/<name>", whose value is the text
// of [directory.Node.Text]. "etcdctl get --prefix /xdpfab/" prints them. A daemon's entry
// hangs on a lease, which ends TTL after the daemon.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/xdpfab/xdpfab/xdpfab/directory"
)

const (
	callLimit  = 3 * time.Second        // of one call of etcd
	retryPause = time.Second            // between attempts while etcd is away
	lostPause  = 100 * time.Millisecond // before all is read anew, and as much again at most, by chance
	lookPause  = 5 * time.Second        // between two pings of a silent connection; package grpc takes 10 s at least
)

// connecting says how often a connection is tried. By the rule of package grpc the pauses
// grow to two minutes, and after a long absence of etcd the lease of a daemon that lives
// would end before the daemon was back.
var connecting = grpc.ConnectParams{MinConnectTimeout: callLimit,
	Backoff: backoff.Config{BaseDelay: retryPause, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * retryPause}}

// Source is a directory in etcd. It implements directory.Source and
// directory.Announcer.
type Source struct {
	name   string // the URL without the password
	prefix string // of all keys, ends with "/nodes/"
	client *clientv3.Client
	losses *losses
	log    *slog.Logger

	announced atomic.Bool // see Announced
}

// Open makes a source of a URL: etcd://HOST:PORT[,HOST:PORT…][/PREFIX], where the prefix
// is "xdpfab" unless it is given. etcds:// uses TLS; its options are
// ?ca=FILE&cert=FILE&key=FILE, of which each may be left out. A user's name may stand
// before the hosts, as in etcds://reader@10.0.0.1:2379; the password is in the
// environment variable XDPFAB_ETCD_PASSWORD. Nothing is sent yet, and it is no error if
// etcd is away. log hears of entries that cannot be understood, and of etcd's going and
// coming; nil is for none.
func Open(text string, log *slog.Logger) (*Source, error) {
	t, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("xdpfab: directory %s: %w", text, err)
	}
	cfg := t.config
	cfg.Logger = zap.NewNop() // what concerns the user comes as an error
	cfg.DialTimeout = callLimit
	cfg.DialKeepAliveTime, cfg.DialKeepAliveTimeout = lookPause, callLimit
	losses := newLosses()
	cfg.DialOptions = []grpc.DialOption{grpc.WithStatsHandler(losses), grpc.WithConnectParams(connecting)}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("xdpfab: directory %s: %w", t.name, err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Source{name: t.name, prefix: t.prefix, client: client, losses: losses, log: log}, nil
}

// Close ends the connection. Whoever watches or announces ends that first.
func (s *Source) Close() error { return s.client.Close() }

// String implements directory.Source.
func (s *Source) String() string { return s.name }

// Watch implements directory.Source.
func (s *Source) Watch(ctx context.Context, report func([]directory.Node, error)) error {
	for {
		err := s.follow(ctx, report)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait := retryPause
		if errors.Is(err, errLost) { // a server that is away is reported when it does not answer
			wait = lostPause + rand.N(lostPause)
		} else {
			report(nil, s.explain(err))
		}
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

// errLost means that a connection or a watch has ended. The client goes on with the next
// one by itself, from the revision that it had reached. But the server may have come back
// without its data. Then its revisions begin anew, and the one that the watch waits for
// lies far ahead. So all is read anew, after a pause: a proxy may end each connection
// once it has answered, and the watches of many nodes lose a server at one moment.
var errLost = errors.New("a connection to etcd has ended")

// follow reads all entries, and then each change, until ctx ends or etcd is away.
func (s *Source) follow(ctx context.Context, report func([]directory.Node, error)) error {
	lost := s.losses.after() // before the entries are read, so that none goes unnoticed
	got, err := s.get(ctx)
	if err != nil {
		return err
	}
	nodes := map[string]directory.Node{}
	for _, kv := range got.Kvs {
		s.enter(nodes, string(kv.Key), kv.Value)
	}
	report(list(nodes), nil)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil) // ends the watch
	go func() {
		select {
		case <-lost:
			end(errLost)
		case <-ctx.Done():
		}
	}()
	for change := range s.changes(ctx, end, got.Header.Revision+1) {
		if err := change.Err(); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		for _, e := range change.Events {
			if e.Type == clientv3.EventTypeDelete {
				delete(nodes, strings.TrimPrefix(string(e.Kv.Key), s.prefix))
			} else {
				s.enter(nodes, string(e.Kv.Key), e.Kv.Value)
			}
		}
		report(list(nodes), nil)
	}
	return cmp.Or(context.Cause(ctx), errors.New("etcd has ended the watch"))
}

// changes begins a watch. The client waits for its beginning as long as ctx lives,
// however often it fails: end is called after callLimit.
func (s *Source) changes(ctx context.Context, end context.CancelCauseFunc, revision int64) clientv3.WatchChan {
	limit := time.AfterFunc(callLimit, func() { end(context.DeadlineExceeded) })
	defer limit.Stop()
	return s.client.Watch(clientv3.WithRequireLeader(ctx), s.prefix, clientv3.WithPrefix(), clientv3.WithRev(revision))
}

// enter notes an entry. One that cannot be understood is left out, and the others stand.
func (s *Source) enter(nodes map[string]directory.Node, key string, value []byte) {
	name := strings.TrimPrefix(key, s.prefix)
	n, err := directory.Parse(name, string(value))
	if err != nil {
		cause := strings.TrimPrefix(err.Error(), "xdpfab: ")
		s.log.Warn("entry of the directory left out", "key", key, "cause", cause)
		delete(nodes, name)
		return
	}
	nodes[name] = n
}

func list(nodes map[string]directory.Node) []directory.Node {
	l := make([]directory.Node, 0, len(nodes))
	for _, n := range nodes {
		l = append(l, n)
	}
	slices.SortFunc(l, func(a, b directory.Node) int { return strings.Compare(a.Name, b.Name) })
	return l
}

func (s *Source) get(ctx context.Context) (*clientv3.GetResponse, error) {
	ctx, end := context.WithTimeout(ctx, callLimit)
	defer end()
	return s.client.Get(ctx, s.prefix, clientv3.WithPrefix())
}

// explain says what a user can do about an error of etcd's client.
func (s *Source) explain(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("etcd: %w", err)
	}
	silent := fmt.Errorf("etcd does not answer within %v: is it running there, and reachable?", callLimit)
	if cause := s.losses.cause(); cause != nil {
		return fmt.Errorf("%w (%w)", silent, cause)
	}
	return silent
}

// pause waits, and returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
