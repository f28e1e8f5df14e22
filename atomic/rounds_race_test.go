// SPDX-License-Identifier: Apache-2.0

//go:build race

package atomic

// raceRounds is small here: the detector slows every step, and finds races
// whatever the exact interleaving.
const raceRounds = 15000
