package checkpoint

import (
	"fmt"

	"cnictl/daemon/api/netnames"
)

// Problem classifies what is wrong with a file.
type Problem string

const (
	Empty        Problem = "empty"         // nothing but white space
	Truncated    Problem = "truncated"     // it ends in the middle of the document
	NotJSON      Problem = "not-json"      // a byte that JSON does not allow
	Foreign      Problem = "foreign"       // JSON of another kind
	WrongVersion Problem = "wrong-version" // a version other than Version
	BadEntry     Problem = "bad-entry"     // one allocation is invalid
)

// FormatError says why a file could not be read.
type FormatError struct {
	Problem Problem
	Version string // for WrongVersion
	Offset  int64  // for NotJSON: bytes before the error
	Entry   int    // for BadEntry: index from 0; otherwise −1
	Field   string // for BadEntry
	Err     error  // may be nil
}

func (e *FormatError) Error() string {
	switch e.Problem {
	case Empty:
		return "checkpoint is empty"
	case Truncated:
		return "checkpoint is truncated"
	case Foreign:
		return `JSON document is not a checkpoint (it has no string "version" or no list "allocations")`
	case WrongVersion:
		return fmt.Sprintf("checkpoint has version %q, accepted is %q", e.Version, netnames.CheckpointVersion)
	case BadEntry:
		return fmt.Sprintf("checkpoint entry %d, field %s: %v", e.Entry, e.Field, e.Err)
	}
	return fmt.Sprintf("checkpoint is not JSON at byte %d: %v", e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }
