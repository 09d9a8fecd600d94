package introspectserver

import (
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
)

// Source provides the state for answers. View may be called concurrently.
type Source interface{ View() View }

// View is the node's state at one moment. It must not be modified.
type View struct {
	Now      time.Time
	Book     ipam.Snapshot
	Cooldown time.Duration

	// Summary is the daemon's state besides the book: limits, targets, clocks, counters.
	// This package fills in the cards' counts, Unplaced, CooldownSeconds, APIVersion and
	// Kind; for each card the daemon sets Card, Mode and the limits.
	Summary introspect.Summary
	Config  []introspect.ConfigRow

	ENIConfigName  string
	ENIConfigKnown bool // false: the Node object could not be read

	NetworkEnv introspect.NetworkEnv
	IPAMEnv    introspect.IPAMEnv
}
