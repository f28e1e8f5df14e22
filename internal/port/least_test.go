// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/xsk"
)

func TestOldKernelsAreRefused(t *testing.T) {
	for release, want := range map[string]string{
		"5.10.0-32-cloud-amd64": "", "5.11.1": "", "6.1.0": "", "7.2.13+deb14-cloud-amd64": "", "banana": "",
		"5.9.16": "Linux 5.9.16 is too old, want 5.10 or newer", "4.19.0": "Linux 4.19.0 is too old", "5.4.0-150-generic": "too old",
	} {
		err := supports(release)
		if want == "" && err != nil || want != "" && (!errors.Is(err, xsk.ErrUnsupported) || !strings.Contains(err.Error(), want)) {
			t.Errorf("Linux %s: %v, want %q", release, err, want)
		}
	}
	if err := supported(); err != nil {
		t.Errorf("the running kernel: %v", err)
	}
}
