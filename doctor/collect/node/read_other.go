//go:build !linux

package node

import (
	"context"

	"cnictl/doctor/evidence"
)

// Read returns a reading without sources: nodes run Linux.
func Read(_ context.Context, o Options) *evidence.Reading {
	return evidence.Unread(o.Now(), evidence.MissingMode)
}
