// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// The ethtool family describes a veth: its offloads by name, and that it has no
// setting for interrupt coalescing.
func TestSettings(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	err := p.A.Do(func() error {
		s := SettingsOf(p.A.IfIndex)
		if s.OffloadsErr != nil {
			return s.OffloadsErr
		}
		if _, ok := s.Offloads["rx-gro"]; !ok {
			t.Errorf("offloads without rx-gro: %v", s.Offloads)
		}
		if _, ok := s.Offloads["rx-lro"]; ok {
			t.Errorf("a veth with rx-lro: %v", s.Offloads)
		}
		if !s.Offloads["tx-scatter-gather"] {
			t.Errorf("offloads without tx-scatter-gather in force: %v", s.Offloads)
		}
		if !errors.Is(s.CoalesceErr, unix.EOPNOTSUPP) || !errors.Is(s.PauseErr, unix.EOPNOTSUPP) {
			t.Errorf("coalescing: %v, pause frames: %v", s.CoalesceErr, s.PauseErr)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := SettingsOf(1 << 30); s.OffloadsErr == nil || s.RingErr == nil {
		t.Errorf("an interface that is not there: %+v", s)
	}
}
