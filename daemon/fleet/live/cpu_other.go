//go:build !unix

package live

import "time"

// processorTime is unavailable here: sampling is then paced only by how long reads take.
func processorTime() time.Duration { return 0 }
