// SPDX-License-Identifier: Apache-2.0

//go:build linux

package residence

import (
	"errors"
	"fmt"
	"log/slog"

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

// tellEnding logs which regions of the process before end, as nothing has asked for them.
// Those whose memory goes on are registered anew. The lock is held.
func (h *Residence) tellEnding() {
	regions, _ := h.Executor.Regions() // Sweep says why not
	for key, r := range regions {
		if _, used := (*h.Keys.Load())[key]; used {
			continue
		}
		about := []slog.Attr{slog.String("region", r.Name.Name), slog.Int("size", r.Length)}
		goesOn, missing := false, false
		for _, m := range h.memories {
			goesOn = goesOn || h.Executor.OnMemory(key, m)
			missing = missing || !m.Found() && m.Name() == r.Name.Memory && len(m.Bytes()) == r.Length
		}
		if goesOn {
			h.n.Log(slog.LevelInfo, "resident region of the former process has other rights or another authorization "+
				"key now: its contents are kept, and peers look it up anew", about...)
			continue
		}
		if missing && h.Store.Path != "" {
			h.n.Log(slog.LevelWarn, "resident region of the former process ends, and its contents are lost: "+
				"its memory is missing in the folder", append(about, slog.String("folder", h.Store.Path))...)
			continue
		}
		h.n.Log(slog.LevelWarn, "resident region of the former process ends, and its contents are lost: "+
			"this one has none of that name and size", about...)
	}
}
