// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

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
	Kind    kind            `json:"kind,omitempty"` // of the error
}

// kind is what a refused request asks of its caller: another request, or another caller.
// It is empty for all other errors, and from daemons of before there were kinds.
type kind string

const (
	kindWrong  kind = "wrong"  // errors.Is(err, ErrWrong)
	kindDenied kind = "denied" // errors.Is(err, fs.ErrPermission)
)

// ErrWrong means that a request is wrong in itself: the daemon will never take it.
var ErrWrong = errors.New("wrong request")

// Wrong has an error match ErrWrong, with the text that it has.
func Wrong(err error) error { return marked{err, ErrWrong} }

// Denied is the error of a request that its caller may not make. It matches
// fs.ErrPermission, whose text it has not.
func Denied(format string, args ...any) error {
	return marked{fmt.Errorf(format, args...), fs.ErrPermission}
}

// marked is an error that matches another one as well.
type marked struct {
	error
	as error
}

func (m marked) Unwrap() []error { return []error{m.error, m.as} }

// kindOf returns what a refusal asks of the caller.
func kindOf(err error) kind {
	switch {
	case errors.Is(err, ErrWrong):
		return kindWrong
	case errors.Is(err, fs.ErrPermission):
		return kindDenied
	}
	return ""
}

// mark has the client's error match what the daemon's did.
func (k kind) mark(err error) error {
	switch k {
	case kindWrong:
		return marked{err, ErrWrong}
	case kindDenied:
		return marked{err, fs.ErrPermission}
	}
	return err
}
