package node

import (
	"time"

	"cnictl/doctor/evidence"
)

// DefaultTimeout is the limit of a source.
const DefaultTimeout = 3 * time.Second

// Options say where to read.
type Options struct {
	Root     string        // of the host's files; empty means /
	Timeout  time.Duration // of a source while the reading does not go on; 0 means DefaultTimeout
	Address  string        // of the daemon's introspection server: unix:/path or host:port
	Metadata string        // URL of the metadata service; empty for the instance's own
	Now      func() time.Time

	// First is the first reading if this is the second: the logs continue from it. It is nil for
	// a first reading.
	First *evidence.Reading
}
