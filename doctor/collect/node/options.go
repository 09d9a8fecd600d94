package node

import (
	"time"

	"cnictl/doctor/evidence"
)

// DefaultTimeout bounds each source.
const DefaultTimeout = 3 * time.Second

// Options say where to read.
type Options struct {
	Root     string        // of the host's files; empty: /
	Timeout  time.Duration // of each source; 0: DefaultTimeout
	Address  string        // of the daemon's introspection server: unix:/path or host:port
	Metadata string        // URL of the metadata service; empty: the instance's own
	Now      func() time.Time

	// First is the first reading, when this is the second: logs continue those of it. Nil:
	// this is the first.
	First *evidence.Reading
}
