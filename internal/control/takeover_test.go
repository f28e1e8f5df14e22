// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// Another user is told who may take over, root once.
func TestMayNotSucceed(t *testing.T) {
	for own, want := range map[int]string{0: "only root may: ", 7: "only root and user 7 may: "} {
		if err := mayNotSucceed(9, own); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), want) {
			t.Errorf("a daemon of user %d: %v; want %q", own, err, want)
		}
	}
}
