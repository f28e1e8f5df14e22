// SPDX-License-Identifier: Apache-2.0

//go:build linux

package residence

import (
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/port"
)

// explain says what is to be done about state that cannot be taken back. Any other reason
// leaves it alone.
func (h *Store) explain(err error) error {
	remedy := fmt.Sprintf("to begin anew, end it with `xdpfab resident remove %s`", h.Path)
	switch {
	case !errors.As(err, new(*port.UnfitError)), errors.Is(err, port.ErrEnded):
		return err
	case errors.Is(err, port.ErrOtherInterface):
		remedy = "name another folder for this interface"
	}
	return fmt.Errorf("what a former process has left in %s cannot be taken back: %w; %s", h.Path, err, remedy)
}
