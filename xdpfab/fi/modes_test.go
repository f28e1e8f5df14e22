// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding"
	"encoding/json"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// mode is the method set that the types of modes have in common.
type mode interface {
	comparable
	encoding.TextMarshaler
	String() string
}

// checkTexts takes the texts of all values, from 0 on, there and back.
func checkTexts[M mode, P interface {
	*M
	encoding.TextUnmarshaler
}](t *testing.T, all map[string]M, none M, want string) {
	t.Helper()
	for text, m := range all {
		got, err := m.MarshalText()
		if err != nil || string(got) != text || m.String() != text {
			t.Errorf("%v: text %q, %v, want %q", m, got, err, text)
		}
		var back M
		if err := P(&back).UnmarshalText([]byte(text)); err != nil || back != m {
			t.Errorf("%q is %v, %v", text, back, err)
		}
	}
	if text, err := none.MarshalText(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v: text %q, %v, want an error that says %q", none, text, err, want)
	}
	for _, text := range []string{"", "Auto", "auto ", "0"} {
		m := none
		if err := P(&m).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || m != none {
			t.Errorf("%q is %v, %v, want an error that says %q, and no change", text, m, err, want)
		}
	}
}

func TestTextsOfModes(t *testing.T) {
	checkTexts(t, map[string]fi.ProgressMode{"auto": fi.ProgressAuto, "manual": fi.ProgressManual}, 2, "want auto or manual")
	checkTexts(t, map[string]fi.CopyMode{"auto": fi.CopyAuto, "copy": fi.CopyForce, "zero-copy": fi.ZeroCopyForce}, 3,
		"want auto, copy or zero-copy")
	if a, b := fi.ProgressMode(2).String(), fi.CopyMode(3).String(); a != "ProgressMode(2)" || b != "CopyMode(3)" {
		t.Errorf("values that are none: %q and %q", a, b)
	}
	b, err := json.Marshal(struct{ P fi.ProgressMode }{fi.ProgressManual})
	if err != nil || string(b) != `{"P":"manual"}` {
		t.Errorf("%s, %v", b, err)
	}
}

// A model of threading can be named in a flag.
func TestThreadingText(t *testing.T) {
	for want, text := range []string{"unspec", "safe", "fid", "domain", "completion", "endpoint"} {
		var got fi.Threading
		if err := got.UnmarshalText([]byte(text)); err != nil || got != fi.Threading(want) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	got := fi.ThreadDomain
	if err := got.UnmarshalText([]byte("domains")); err == nil || !strings.Contains(err.Error(), "want unspec, safe") || got != fi.ThreadDomain {
		t.Errorf("domains is %v, %v, want an error with the names, and no change", got, err)
	}
}
