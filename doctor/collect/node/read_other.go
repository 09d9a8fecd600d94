//go:build !linux

package node

import (
	"context"

	"cnictl/doctor/evidence"
)

// Read has nothing to read: a node runs Linux.
func Read(_ context.Context, o Options) *evidence.Reading {
	return evidence.Unread(o.Now(), evidence.MissingMode)
}
