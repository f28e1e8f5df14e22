// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/xdpfab/xdpfab/internal/control"
)

// kept lists the regions that outlive their programs.
func (s *server) kept() []control.Kept {
	list := []control.Kept{} // not nil, which JSON calls null
	for _, k := range s.host.Kept() {
		list = append(list, control.Kept{KeptRegion: k, User: userName(k.UID)})
	}
	return list
}

// withdraw withdraws a kept region for its user, root or the daemon's own user. A program
// that may write to the socket can ask.
func (s *server) withdraw(ctx context.Context, arguments json.RawMessage) (any, error) {
	var w control.Withdraw
	if err := json.Unmarshal(arguments, &w); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	caller, err := control.Caller(ctx)
	if err != nil {
		return nil, err
	}
	k, err := pick(s.kept(), w)
	if err != nil {
		return nil, err
	}
	if err := mayWithdraw(caller.UID, k); err != nil {
		return nil, err
	}
	if err := s.host.WithdrawKept(k.UID, k.Name); err != nil {
		return nil, err
	}
	s.log.Info("kept region withdrawn", "name", k.Name, "uid", k.UID, "by_uid", caller.UID)
	return k, nil
}

// mayWithdraw reports why a user may not withdraw a region.
func mayWithdraw(uid uint32, k control.Kept) error {
	if uid == 0 || uid == uint32(os.Geteuid()) || uid == k.UID {
		return nil
	}
	return control.Denied("user %d: only user %d, root and the daemon's own user may withdraw region %q, which %s "+
		"lets its programs keep; ask one of them", uid, k.UID, k.Name, k.Rule)
}

// pick returns the region that is meant.
func pick(all []control.Kept, w control.Withdraw) (k control.Kept, err error) {
	found := slices.DeleteFunc(all,
		func(k control.Kept) bool { return k.Name != w.Name || w.UID != nil && k.UID != *w.UID })
	switch len(found) {
	case 0:
		return k, fmt.Errorf("no region %q is kept; `xdpfab kept` lists those that are", w.Name)
	case 1:
		return found[0], nil
	}
	return k, fmt.Errorf("a region %q is kept for %d users, such as %d and %d: name one of them with --user", w.Name,
		len(found), found[0].UID, found[1].UID)
}
