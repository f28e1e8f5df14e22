// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// ofEtcd are locks by etcd's own client, each client with a connection and a session.
func ofEtcd(ctx context.Context, s *settings, test string) (loop, func(uint64) error, error) {
	var o handover
	var closers []func() error
	end := func(uint64) (err error) {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	}
	for range s.clients {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.peer}, Context: ctx, Logger: zap.NewNop()})
		if err != nil {
			return nil, nil, errors.Join(err, end(0))
		}
		closers = append(closers, c.Close)
		session, err := concurrency.NewSession(c)
		if err != nil {
			return nil, nil, errors.Join(err, end(0))
		}
		m := concurrency.NewMutex(session, "/bench")
		o.lockers = append(o.lockers, func(ctx context.Context) (func() error, error) {
			return func() error { return m.Unlock(ctx) }, m.Lock(ctx)
		})
	}
	switch test {
	case "locks":
		return lockLoop(o.lockers[0]), end, nil
	case "handover":
		return o.loop, end, nil
	}
	return nil, nil, errors.Join(unknown("etcd", test), end(0))
}
