// SPDX-License-Identifier: Apache-2.0

package sim

const sessionInquest = "internal/session/inquest.go"

// Bugs of processes that something outlives.
var bugsOfProcesses = []bug{
	{"a watch of a session that goes on does not ask for the process", "TestProcessDies", []edit{
		{sessionInquest, "s.watched && s.lasting != 0 }", "false }"}}},
	{"the process is forgotten over what outlives it", "TestProcessDies", []edit{
		{engineMeet, "case r.process != 0 && r.process != life:", "case false:"}}},
	{"a session that ended with its process is merely forgotten", "TestProcessDies", []edit{
		{engineSuspended, "why = session.PeerRestarted\n", "why = session.Forgotten\n"}}},
	{"what waits by a key alone goes on in the next process", "TestProcessDies", []edit{
		{engineMeet, "f.message() || f.Verb.Array() && f.Incarnation == 0\n", "f.message()\n"}}},
}
