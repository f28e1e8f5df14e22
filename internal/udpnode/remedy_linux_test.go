// SPDX-License-Identifier: Apache-2.0

package udpnode

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/residence"
)

// UDP sockets are advised where AF_XDP is not to be had, but not where the folder of
// resident regions is at fault.
func TestRemedy(t *testing.T) {
	for want, err := range map[bool]error{true: fs.ErrPermission, false: &residence.FolderError{Err: fs.ErrPermission}} {
		if got := remedy(err); strings.Contains(got.Error(), "--transport udp") != want || !errors.Is(got, fs.ErrPermission) {
			t.Errorf("%v; want the advice: %t", got, want)
		}
	}
}
