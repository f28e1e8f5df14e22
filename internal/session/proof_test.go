// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// When the path changes while a session finds out how long frames may be, it begins anew:
// a probe of full length leaves at once, those before count neither as lost nor, if their
// echoes come late, as a proof, and the target is not taken for a silent one.
func TestProofBeginsAnew(t *testing.T) {
	p := newPair(t, 1, Config{Features: wire.FeatureEchoes | wire.FeatureLongProbes})
	p.ini.p.Sure = 600
	p.open()
	if !p.ini.proving() {
		t.Fatal("the session opens without a proof")
	}
	p.emit()
	for range 2 * proofMisses {
		p.ini.Hurry(p.now)
		p.ini.Tick(p.now)
		b := make([]byte, 2048)
		if n := p.ini.Emit(p.now, b); n != 1500 {
			t.Fatalf("a frame of %d bytes, want a probe of 1500", n)
		}
		if p.ini.Troubled() || p.ini.Due() {
			t.Fatalf("troubled: %t, more is due: %t", p.ini.Troubled(), p.ini.Due())
		}
	}
	first := p.toTgt[0].frame
	p.toTgt = nil
	p.target(first)
	p.emit()
	if len(p.toIni) != 1 || len(p.toIni[0].frame) != 1500 {
		t.Fatalf("%d frames answer the first probe", len(p.toIni))
	}
	p.initiator(p.toIni[0].frame)
	if p.toIni = nil; !p.ini.proving() {
		t.Error("an echo by the former path proves the present one")
	}
	p.run(100)
	p.check(100)
	if p.ini.proving() || p.ini.payload != 1500-wire.HeaderLen {
		t.Errorf("proving: %t, payloads of %d bytes", p.ini.proving(), p.ini.payload)
	}
}
