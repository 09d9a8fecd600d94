package rules

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/iptables"
)

// kubeletChains are created by kubelet in table mangle of the backend that it uses, and
// never removed, so that programs in containers can use the same one.
var kubeletChains = []string{"KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"}

// kubeProxyTable is where kube-proxy keeps all its rules in its "nftables" mode.
const kubeProxyTable = "kube-proxy"

// Traces describes what other programs have in one backend of iptables, in both families.
type Traces struct {
	Missing bool   // the kernel does not have the backend
	Hint    string // evidence that the node uses it; "" if none
	Rules   int
}

// HostBackend finds the backend that the node's programs use, by the same rules as the
// wrapper for iptables in kube-proxy's image, so that all agree. plain is the result
// without evidence: the mode of iptables itself. The reason is for people.
func HostBackend(nft, legacy Traces, plain Backend) (_ Backend, reason string) {
	switch {
	case nft.Missing:
		return IPTables, "the kernel has no nf_tables"
	case nft.Hint != "":
		return NFTables, nft.Hint + " in nf_tables"
	case legacy.Hint != "":
		return IPTables, legacy.Hint + " in the legacy backend"
	case nft.Rules > legacy.Rules:
		return NFTables, "nf_tables holds more rules of others"
	case nft.Rules < legacy.Rules:
		return IPTables, "the legacy backend holds more rules of others"
	}
	return plain, "nothing on the node indicates it, using the mode of iptables"
}

// BackendFollower decides when rules move to the backend that [HostBackend] finds later on. The
// zero value has no history.
type BackendFollower struct {
	favoured Backend   // by numbers of rules, in the last look
	moved    time.Time // the last move
}

// movedFor is how long after a move numbers of rules cause no other one.
const movedFor = 10 * time.Minute

// Follow reports whether to move from the backend in use to the one that was found. A hint
// decides at once, as at the start. Numbers of rules change while programs rewrite theirs: they
// decide only if two looks in a row favour the same backend.
func (f *BackendFollower) Follow(now time.Time, used, found Backend, hinted bool) bool {
	again := f.favoured == found
	f.favoured = found
	return used != found && (hinted || again && (f.moved.IsZero() || now.Sub(f.moved) >= movedFor))
}

// Undecided reports whether another look could decide.
func (f *BackendFollower) Undecided(used Backend) bool { return f.favoured != "" && f.favoured != used }

// Moved records a move.
func (f *BackendFollower) Moved(now time.Time) { f.moved = now }

// Add merges the traces of the other family.
func (t Traces) Add(more Traces) Traces {
	if t.Hint == "" {
		t.Hint = more.Hint
	}
	t.Rules += more.Rules
	return t
}

// TracesOf finds the traces in one family.
func TracesOf(r iptables.Ruleset) (t Traces) {
	for _, table := range r.Tables {
		for _, c := range table.Chains {
			if table.Name == "mangle" && t.Hint == "" && slices.Contains(kubeletChains, c.Name) {
				t.Hint = "chain " + c.Name
			}
			if ownChain(table.Name, c.Name) {
				continue
			}
			for _, spec := range c.Rules {
				if !ownRule(table.Name, c.Name, spec) {
					t.Rules++
				}
			}
		}
	}
	return t
}

// NFTHint reads `nft list chains` and returns the evidence that the node uses nf_tables, or
// "". kube-proxy's own table counts too: its translation comes before marks that the legacy
// backend would set.
func NFTHint(listing string) string {
	table := ""
	for line := range strings.Lines(listing) {
		f := strings.Fields(line)
		switch {
		case len(f) == 4 && f[0] == "table" && (f[1] == "ip" || f[1] == "ip6"):
			if table = f[2]; table == kubeProxyTable {
				return "table " + f[1] + " " + table
			}
		case len(f) > 0 && f[0] == "table":
			table = ""
		case len(f) == 3 && f[0] == "chain" && table == "mangle" && slices.Contains(kubeletChains, f[1]):
			return "chain " + f[1]
		}
	}
	return ""
}
