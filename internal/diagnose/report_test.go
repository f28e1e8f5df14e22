// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// What a report concludes from its steps.
func TestConclude(t *testing.T) {
	fail := func(p Place) Step {
		return Step{Verdict: Failed, Place: p, Detail: "at " + string(p), Remedy: "mend it"}
	}
	good := Step{Verdict: OK}
	peer, _ := wire.ParseAddr("10.0.0.2")
	for name, c := range map[string]struct {
		steps    []Step
		answered bool
		failed   Place
		cause    string
	}{
		"in order":                         {[]Step{good}, true, "", ""},
		"here":                             {[]Step{fail(Here), fail(There)}, false, Here, "at here"},
		"there":                            {[]Step{good, fail(There)}, false, There, "probably the program"},
		"a part":                           {[]Step{good, fail(Part)}, true, Part, "at part"},
		"a step in vain, and an answer":    {[]Step{fail(Here), fail(There), good}, true, "", ""},
		"a step in vain, then another one": {[]Step{fail(There), fail(Part)}, true, Part, "at part"},
		"nothing tried":                    {[]Step{good, {Verdict: LeftOut}}, false, Here, "nothing was asked"},
	} {
		r := Report{Steps: c.steps}
		r.conclude(&Finding{Peer: peer}, c.answered)
		if r.Failed != c.failed || !strings.HasPrefix(r.Cause, c.cause) || r.OK != (c.failed == "") || (r.Remedy == "") != r.OK {
			t.Errorf("%s: %+v", name, r)
		}
		var b strings.Builder
		r.Text(&b)
		if !strings.Contains(b.String(), r.Cause) || r.OK != strings.Contains(b.String(), "answers") {
			t.Errorf("%s: text %q", name, b.String())
		}
	}
}
