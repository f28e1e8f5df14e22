// SPDX-License-Identifier: Apache-2.0

//go:build !race

package atomic

// raceRounds is how often each worker of a race test acts: many, because
// operations of some nanoseconds must overlap on as few as two cores.
const raceRounds = 150000
