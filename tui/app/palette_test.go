package app

import (
	"strings"
	"testing"
)

func TestCompletions(t *testing.T) {
	t.Parallel()
	items := []choice{
		{Kind: ofScreen, Name: "subnets", Title: "free addresses"}, {Kind: ofScreen, Name: "pods", Title: "all pods, and why some have no address"}, {Kind: ofScreen, Name: "logs", Title: "of the daemons of nodes"},
		{Kind: ofCommand, Name: "sort", Title: "the rows: sort -ip,node", Argument: true}, {Kind: ofCommand, Name: "quit", Title: "leave"},
		{Kind: ofCommand, Name: "pod", Title: "go to a pod", Argument: true}, {Kind: ofCommand, Name: "ip", Title: "who has an address", Argument: true},
		{Kind: ofObject, Name: "sub-node"}, {Kind: ofObject, Name: "ip-10-0-3-17"}, {Kind: ofObject, Name: "pod"}, {Kind: ofObject, Name: "my-pod-host", Title: "pod"},
	}
	for text, want := range map[string]string{
		"sub":            "subnets sub-node",         // a prefix of a name: screens before nodes
		"3-17":           "ip-10-0-3-17",             // within a name
		"pod":            "pod pod pods my-pod-host", // the name, a prefix, a part of it; not the description of an object
		"addr":           "subnets pods ip pod addr", // descriptions, else perhaps a pod
		"node":           "sub-node logs sort",       // a name before descriptions
		"sort -ip":       "sort",                     // a command by its first word
		"pod shop/cart":  "pod",                      // likewise
		"leave":          "quit pod leave",           // only a description
		"SUBN":           "subnets",                  // upper case
		"10.0.1.22":      "ip 10.0.1.22",             // an address: searches for it
		"  10.0.1.22 ":   "ip 10.0.1.22",             // as pasted
		"FD00::1":        "ip fd00::1",               // IPv6
		"::ffff:1.2.3.4": "ip 1.2.3.4",               // IPv4 in IPv6
		"10.0.1":         "",                         // no valid address
		"fe80::1%eth0":   "",                         // link-local: no pod has it
		"shop/cart-1":    "pod shop/cart-1",          // a pod
		" shop/cart-1\t": "pod shop/cart-1",          // as pasted
		"shop/":          "",                         // no valid name
		"a/b/c":          "",                         // no valid pod
		"Shop/cart":      "",                         // no valid namespace
		"":               "subnets pods logs sort quit pod ip sub-node",
		"zzz":            "pod zzz",
	} {
		var got []string
		for _, i := range completions(items, text) {
			got = append(got, i.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
	if got := completions(items, "leave"); !got[0].Weak || !got[1].Weak || completions(items, "qu")[0].Weak {
		t.Error("a match of a description is as good as one of a name")
	}
	named := []choice{{Kind: ofScreen, Name: "nodes", Also: "overview", Title: "all"}, {Kind: ofCommand, Name: "pod", Argument: true}, {Kind: ofPod, Name: "pod shop/cart-1"}}
	if got := completions(named, "overview"); len(got) == 0 || got[0].Weak || got[0].Name != "nodes" {
		t.Errorf("the other name of a screen gives %+v", got)
	}
	if got := completions(named, "pod ca"); len(got) != 2 || got[0].Name != "pod" || got[1].Kind != ofPod {
		t.Errorf("a part of a pod's name gives %+v", got)
	}
	if got := (choice{Name: "sort", Argument: true}).Completion(); got != "sort " {
		t.Errorf("%q", got)
	}
}
