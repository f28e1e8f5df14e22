// SPDX-License-Identifier: Apache-2.0

package control

import "encoding/json"

// ProtocolVersion is the version of requests and answers. Either side refuses any
// other.
const ProtocolVersion = 1

// Request asks a daemon to do something.
type Request struct {
	Version   int             `json:"version"` // ProtocolVersion
	Verb      string          `json:"verb"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // the verb's own
}

// Answer is the outcome of a request: a result or an error.
type Answer struct {
	Version int             `json:"version"` // ProtocolVersion
	Result  json.RawMessage `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
}
