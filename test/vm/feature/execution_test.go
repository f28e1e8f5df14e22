// SPDX-License-Identifier: Apache-2.0

//go:build linux

package feature

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	helpers "github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// probeExecution asks for the newest helper that a program needs which executes requests.
func probeExecution(*testing.T, *testnet.Pair) error {
	err := helpers.HaveProgramHelper(ebpf.XDP, asm.FnXdpLoadBytes)
	if errors.Is(err, ebpf.ErrNotSupported) {
		return unix.EINVAL
	}
	return err
}

func useExecution(t *testing.T, _ *testnet.Pair) {
	x, err := resident.Load(resident.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}
