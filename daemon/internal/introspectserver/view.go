package introspectserver

import (
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
)

// Source gives the state to answer from. View may be called from many goroutines.
type Source interface{ View() View }

// View is the node at one moment. It is read only.
type View struct {
	Now      time.Time
	Book     ipam.Snapshot
	Cooldown time.Duration

	// Summary is what the daemon knows beside the book: limits, targets, clocks,
	// counters. The counts of its cards, Unplaced, CooldownSeconds, APIVersion and
	// Kind are filled in here; of a card the daemon gives Card, Mode and limits.
	Summary introspect.Summary
	Config  []introspect.ConfigRow

	ENIConfigName  string
	ENIConfigKnown bool // false: the Node object could not be read

	NetworkEnv introspect.NetworkEnv
	IPAMEnv    introspect.IPAMEnv
}
