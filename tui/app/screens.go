package app

import (
	"cnictl/tui/pages"
	"cnictl/tui/pages/doctor"
	"cnictl/tui/pages/lists"
	"cnictl/tui/pages/logs"
	"cnictl/tui/pages/node"
	"cnictl/tui/pages/overview"
	"cnictl/tui/pages/pod"
	"cnictl/tui/pages/subnets"
	"cnictl/tui/pages/whatif"
)

// screen describes a kind of screen.
type screen struct {
	name  string
	title string
	alone bool   // needs no object, so it has a digit and a place in the palette
	says  string // description in the palette
	new   pages.New
}

// screens returns all screens, the standalone ones in the order of their digits.
func screens() []screen {
	return []screen{
		{"overview", "Nodes", true, "all nodes, the worst first", func(o pages.Open) pages.Page { return overview.New(o) }},
		{"subnets", "Subnets", true, "free and held addresses, maps, forecasts", subnets.New},
		{"trunks", "Trunks", true, "branch ENIs: security groups for pods", lists.NewTrunks},
		{"doctor", "Doctor", true, "what is wrong and why, with evidence and fixes", doctor.New},
		{"logs", "Logs", true, "what the daemons log, the worst nodes first", logs.New},
		{"pods", "Pods", true, "all pods: addresses, and why others have none", func(o pages.Open) pages.Page { return lists.NewPods(o) }},
		{"enis", "ENIs", true, "the ENIs of all nodes", func(o pages.Open) pages.Page { return lists.NewENIs(o) }},
		{"whatif", "What-if", true, "other settings: addresses held and free, EC2 calls", whatif.New},
		{"node", "Node", false, "", node.New},
		{"eni", "ENI", false, "", lists.NewENI},
		{"pod", "Pod", false, "", pod.New},
	}
}

func screenOf(name string) (screen, bool) {
	for _, s := range screens() {
		if s.name == name {
			return s, true
		}
	}
	return screen{}, false
}

// digits returns the standalone screens, in the order of their digits.
func digits() []screen {
	var out []screen
	for _, s := range screens() {
		if s.alone {
			out = append(out, s)
		}
	}
	return out
}
