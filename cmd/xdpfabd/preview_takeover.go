// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/control"
)

// mayTakeOver asks the daemon at the control socket why it would refuse a takeover; nil
// if it would not, or if this user may not ask. That one serves on.
func (c Config) mayTakeOver() error {
	ctx, cancel := context.WithTimeout(context.Background(), control.AskLimit)
	defer cancel()
	claim, err := c.claimAt(ctx)
	if err != nil {
		return nil
	}
	conn, err := control.AskToTakeOver(ctx, c.controlPath())
	if err != nil {
		return nil
	}
	defer conn.Close()
	claim.Looks = true
	v, _, err := (&server{cfg: c}).ask(conn, claim)
	if hungUp(err) || len(v.Files) != len(v.Regions) {
		return nil
	}
	for i, l := range v.Regions {
		if own := c.region(l.Name); own != nil && own.isFile() && err == nil {
			if err = own.isAt(v.Files[i]); err != nil {
				err = fmt.Errorf("region %q: %w", l.Name, err)
			}
		}
	}
	return err
}
