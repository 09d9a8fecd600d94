package source

import (
	"context"

	"cnictl/daemon/api/introspect"
	"cnictl/doctor/evidence"
)

// Examine has the doctor look at nodes, those of the scope where none is named, and waits for
// its report. It says how far it is from any goroutine: what is being read, done of total;
// total is 0 as long as nobody knows.
type Examine func(ctx context.Context, scope evidence.Scope, nodes []string, progress func(done, total int, what string)) (introspect.DoctorReport, error)
