package catalogue

import (
	"sync"

	"cnictl/daemon/api/cause"
)

// reported names the entry for each code that a daemon, or cnictl in its place, reports about itself
// and that several entries have in Daemon, or none.
var reported = map[string]string{
	// Of the daemon: what it reports of one node does not tell which of several causes it is.
	string(cause.PoolDry):              "obs/add-waiting",
	string(cause.PoolFull):             "obs/pool-dry",
	string(cause.EC2Error):             "obs/ec2-error",
	string(cause.ENIConfigMissing):     "cfgnet/eniconfig-missing",
	string(cause.TrunkMissing):         "obs/add-failing",
	string(cause.BranchPending):        "sgp/annotation-pending",
	string(cause.LinkConflict):         "obs/add-failing",
	string(cause.NetnsGone):            "obs/add-failing",
	string(cause.PodNetworkChanged):    "obs/add-failing",
	string(cause.NotSupported):         "obs/add-failing",
	string(cause.Internal):             "obs/add-failing",
	string(cause.NodeUnschedulable):    "eni/node-unschedulable",
	string(cause.CheckpointUnreadable): "obs/checkpoint",
	string(cause.DaemonStarting):       "obs/daemon-not-ready",

	// Of cnictl, from what a sweep reads.
	"no-free-address":     "obs/pool-dry",
	"max-pods-over":       "cap/max-pods",
	"max-pods-under":      "obs/max-pods-low",
	"max-pods-at-risk":    "cap/max-pods",
	"config":              "config/invalid",
	"stated-limit":        "obs/stated-limit",
	"unplaced-assignment": "obs/pod-address-on-no-eni",
	"subnet-short":        "obs/subnet-low",
}

var byReported = sync.OnceValue(func() map[string]*Entry {
	out := map[string]*Entry{}
	for e := range All() {
		for _, code := range e.Daemon {
			if reported[string(code)] == "" {
				out[string(code)] = e
			}
		}
	}
	for code, of := range reported {
		if e, ok := Lookup(of); ok {
			out[code] = e
		}
	}
	return out
})

// Reported returns the entry under which the doctor, lists and screens show what a daemon reports
// about itself. It returns false for what is no fault of the node, such as being cordoned.
func Reported(code string) (*Entry, bool) {
	e, ok := byReported()[code]
	return e, ok
}

// Named returns the code under which people are shown what a daemon reports: that of Reported, else the
// daemon's own.
func Named(code string) string {
	if e, ok := Reported(code); ok {
		return e.Code
	}
	return code
}
