package app

import (
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
	"cnictl/tui/query"
)

// TestJumps: where each key leads from each screen.
func TestJumps(t *testing.T) {
	t.Parallel()
	const node, eni, subnet, pod, address = pagetest.Plain, "eni-0a1b2c3d4e5f60718", "subnet-0aa11bb22cc33dd44", "shop/cart-7d9f-1", "10.0.3.42"
	var (
		logs   = pages.Open{Screen: "logs", Node: node}
		whatif = pages.Open{Screen: "whatif", Node: node}
		doctor = pages.Open{Screen: "doctor", Node: node}
		toNode = pages.Open{Screen: "node", Node: node}
	)
	for name, x := range map[string]struct {
		of    pages.Open
		leads map[string]pages.Open // by action; the others lead nowhere
	}{
		"nodes": {pages.Open{Screen: "overview"}, map[string]pages.Open{
			keymap.Logs:   {Screen: "logs", Node: pagetest.Starved}, // the worst
			keymap.WhatIf: {Screen: "whatif"}, keymap.Doctor: {Screen: "doctor"}, keymap.ToNode: {Screen: "node", Node: pagetest.Starved},
			keymap.Subnets: {Screen: "subnets", Node: pagetest.Starved}, keymap.Trunks: {Screen: "trunks", Node: pagetest.Starved},
		}},
		"node": {toNode, map[string]pages.Open{
			keymap.Logs: logs, keymap.WhatIf: whatif, keymap.Doctor: doctor,
			keymap.Subnets: {Screen: "subnets", Node: node, Subnet: subnet}, keymap.Trunks: {Screen: "trunks", Node: node},
		}},
		"ENI": {pages.Open{Screen: "eni", Node: node, ENI: eni, IP: address}, map[string]pages.Open{
			keymap.Logs: {Screen: "logs", Node: node, ENI: eni}, keymap.WhatIf: whatif, keymap.Doctor: doctor, keymap.ToNode: toNode,
			keymap.Subnets: {Screen: "subnets", Node: node, Subnet: subnet}, keymap.Trunks: {Screen: "trunks", Node: node},
		}},
		"pod": {pages.Open{Screen: "pod", Node: node, Pod: pod}, map[string]pages.Open{
			keymap.Logs: {Screen: "logs", Node: node, Pod: pod}, keymap.WhatIf: whatif, keymap.Doctor: {Screen: "doctor", Node: node, Pod: pod},
			keymap.ToNode: toNode, keymap.ToENI: {Screen: "eni", Node: node, ENI: eni},
			keymap.Subnets: {Screen: "subnets", Node: node}, keymap.Trunks: {Screen: "trunks", Node: node},
		}},
		"pods": {pages.Open{Screen: "pods", Filter: query.Term("pod", pod)}, map[string]pages.Open{
			keymap.Logs: {Screen: "logs", Node: node, Pod: pod}, keymap.WhatIf: whatif, keymap.Doctor: {Screen: "doctor", Node: node, Pod: pod},
			keymap.ToNode: toNode, keymap.ToENI: {Screen: "eni", Node: node, ENI: eni, IP: address},
			keymap.Subnets: {Screen: "subnets", Node: node}, keymap.Trunks: {Screen: "trunks", Node: node},
		}},
		"ENIs": {pages.Open{Screen: "enis", Filter: query.Term("eni", eni)}, map[string]pages.Open{
			keymap.Logs: {Screen: "logs", Node: node, ENI: eni}, keymap.WhatIf: whatif, keymap.Doctor: doctor, keymap.ToNode: toNode,
			keymap.ToENI: {Screen: "eni", Node: node, ENI: eni}, keymap.Subnets: {Screen: "subnets", Node: node, Subnet: subnet}, keymap.Trunks: {Screen: "trunks", Node: node},
		}},
		"what if": {whatif, map[string]pages.Open{
			keymap.Logs: logs, keymap.Doctor: doctor, keymap.ToNode: toNode,
			keymap.Subnets: {Screen: "subnets", Node: node}, keymap.Trunks: {Screen: "trunks", Node: node},
		}},
		"logs of a node": {logs, map[string]pages.Open{
			keymap.WhatIf: whatif, keymap.Doctor: doctor, keymap.ToNode: toNode,
			keymap.Subnets: {Screen: "subnets", Node: node}, keymap.Trunks: {Screen: "trunks", Node: node},
		}},
		"what if of all": {pages.Open{Screen: "whatif"}, nil},
		"subnets":        {pages.Open{Screen: "subnets"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			screen, _ := screenOf(x.of.Screen)
			s := pagetest.Open(screen.new(x.of), pagetest.Fleet(), 120, 37)
			s.Wait(3)
			for _, action := range []string{keymap.Logs, keymap.WhatIf, keymap.Doctor, keymap.ToNode, keymap.ToENI, keymap.Subnets, keymap.Trunks} {
				got, ok := pages.Jump(s.Page, s.Context(), action)
				if want, leads := x.leads[action]; ok != leads || got != want && ok {
					t.Errorf("%s leads to %+v, %v; want %+v, %v", action, got, ok, want, leads)
				}
			}
		})
	}
}
