// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import "testing"

// User space attends the sessions of a server that is shown, those that begin meanwhile,
// too, and no other server's; a session that another process continues is not attended.
func TestShow(t *testing.T) {
	x := mustLoad(t, Config{Sessions: 3, Regions: 1})
	server := func() *Server {
		v, err := x.NewServer(nil, 0, func() int64 { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v, other := server(), server()
	p := killed
	begin := func(v *Server) *Session {
		p.Local++
		s, err := v.Begin(0, p)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	check := func(when string, s *Session, want uint8) {
		t.Helper()
		if state, err := x.state(s.place); err != nil || state.Attended != want {
			t.Errorf("%s: attended %d, want %d; %v", when, state.Attended, want, err)
		}
	}
	before, others := begin(v), begin(other)
	v.Show(true)
	meanwhile := begin(v)
	check("begun before", before, attendShown)
	check("begun meanwhile", meanwhile, attendShown)
	check("of another server", others, 0)
	before.Detach()
	check("continued by another process", before, 0)
	v.Show(false)
	check("no longer shown", meanwhile, 0)
}
