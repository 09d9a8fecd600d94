// Package situation reads situations: a short language that describes a cluster by its true state,
// the world, and by what was read of it, the sources.
package situation

import (
	"cnictl/doctor/evidence"
	"cnictl/doctor/file"
)

// Load returns the evidence of a situation.
func Load(data []byte) (*evidence.Evidence, error) { return file.Load(data) }
