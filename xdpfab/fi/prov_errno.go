// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// ProvErrno is how an operation failed, in the terms of the protocol: prov_errno of an
// error entry; see fi_cq(3). Equal failures have equal numbers, for logs and statistics;
// programs decide by errors.Is and by OpError.Errno. 0 is no failure.
type ProvErrno uint32

// A number has the fate of the operation in bits 16 to 23, the reason why the session
// ended in bits 8 to 15, and the status from the target in bits 0 to 7.
func provErrnoOf(r engine.Result) ProvErrno {
	return ProvErrno(r.Outcome)<<16 | ProvErrno(r.Reason)<<8 | ProvErrno(r.Status)
}

// String returns the failure in words (fi_cq_strerror).
func (e ProvErrno) String() string {
	if e == 0 {
		return "success"
	}
	fate, reason, status := engine.Outcome(e>>16), session.Reason(e>>8), wire.Status(e)
	known := certainties[fate]
	if known == nil {
		return fmt.Sprintf("ProvErrno(%#x)", uint32(e))
	}
	if status != wire.StatusOK {
		return fmt.Sprintf("%v: target: %v", known, status)
	}
	return fmt.Sprintf("%v: session: %v", known, reason)
}

// Errno returns the fabric error code of the failure (err of an error entry): that of its
// cause.
func (e *OpError) Errno() Errno {
	code, _ := ErrnoOf(e)
	return code
}

// ProvErrno returns the failure in the terms of the protocol.
func (e *OpError) ProvErrno() ProvErrno { return e.prov }
