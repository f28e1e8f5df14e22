// SPDX-License-Identifier: Apache-2.0

// Package layout holds no code: its tests keep the rules of ARCHITECTURE.md that
// a compiler does not. Imports point one way, unsafe stays in few files, and
// every file says under which licence it is. docs/libfabric.md names only what exists.
package layout
