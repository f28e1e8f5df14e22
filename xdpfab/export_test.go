// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"time"

	"github.com/xdpfab/xdpfab/internal/node"
)

// A live peer is given up by no test of this package: one that wants that to happen
// makes the peer unreachable, and sets GiveUp.
func init() { node.DefaultGiveUp, looks = time.Minute, 2000 }

// StatisticsOf sorts statistics by name into fields.
var StatisticsOf = statisticsOf

// HeldRequests is how many requests a handler has.
func HeldRequests(h *Handler) int { return h.h.Held() }
