package rules_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
)

func TestHostBackend(t *testing.T) {
	t.Parallel()
	hint := rules.Traces{Hint: "chain KUBE-KUBELET-CANARY"}
	for name, row := range map[string]struct {
		nft, legacy rules.Traces
		plain, want rules.Backend
		reason      string
	}{
		"nothing, plain nft":        {rules.Traces{}, rules.Traces{}, rules.NFTables, rules.NFTables, "nothing on the node indicates it"},
		"nothing, plain legacy":     {rules.Traces{}, rules.Traces{}, rules.IPTables, rules.IPTables, "nothing on the node indicates it"},
		"hint in nft":               {hint, rules.Traces{Rules: 9}, rules.IPTables, rules.NFTables, "chain KUBE-KUBELET-CANARY in nf_tables"},
		"hint in legacy":            {rules.Traces{Rules: 9}, hint, rules.NFTables, rules.IPTables, "chain KUBE-KUBELET-CANARY in the legacy"},
		"hint in both, as wrappers": {hint, hint, rules.IPTables, rules.NFTables, "in nf_tables"},
		"more rules in nft":         {rules.Traces{Rules: 2}, rules.Traces{Rules: 1}, rules.IPTables, rules.NFTables, "nf_tables holds more"},
		"more rules in legacy":      {rules.Traces{Rules: 1}, rules.Traces{Rules: 2}, rules.NFTables, rules.IPTables, "legacy backend holds more"},
		"as many":                   {rules.Traces{Rules: 2}, rules.Traces{Rules: 2}, rules.IPTables, rules.IPTables, "nothing on the node indicates it"},
		"no nf_tables":              {rules.Traces{Missing: true}, rules.Traces{}, rules.NFTables, rules.IPTables, "the kernel has no nf_tables"},
	} {
		got, reason := rules.HostBackend(row.nft, row.legacy, row.plain)
		if got != row.want || !strings.Contains(reason, row.reason) {
			t.Errorf("%s: %s, %q", name, got, reason)
		}
	}
}

// Our own rules, of any release, are no evidence about the node.
func TestTraces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]rules.Traces{
		"": {},
		"*mangle\n:PREROUTING ACCEPT [0:0]\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n":     {Hint: "chain KUBE-IPTABLES-HINT"},
		"*nat\n:KUBE-KUBELET-CANARY - [0:0]\n-A KUBE-KUBELET-CANARY -j RETURN\nCOMMIT": {Rules: 1},
		"*mangle\n:KUBE-KUBELET-CANARY - [0:0]\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n": {Hint: "chain KUBE-KUBELET-CANARY"},
	} {
		r, err := iptables.ParseSave(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := rules.TracesOf(r); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	in := rules.NodeInput{PrimaryLink: "eth0", PrimaryIP: netip.MustParseAddr("10.0.0.10"), VPCCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, NodePortSupport: true, ConnMark: 0x80, VethPrefix: "eni"}
	for _, backend := range []rules.Backend{rules.NFTables, rules.IPTables} {
		in.Backend = backend
		if got := rules.TracesOf(rules.Node(in).Ruleset); got != (rules.Traces{}) {
			t.Errorf("of our own rules: %+v", got)
		}
	}
	in.V6Egress = true
	if got := rules.TracesOf(rules.WantedRuleset6(in)); got != (rules.Traces{}) {
		t.Errorf("of our own guard: %+v", got)
	}
	sum := rules.Traces{Rules: 1}.Add(rules.Traces{Hint: "a", Rules: 2}).Add(rules.Traces{Hint: "b"})
	if sum != (rules.Traces{Hint: "a", Rules: 3}) {
		t.Errorf("sum %+v", sum)
	}
}

func TestNFTHint(t *testing.T) {
	t.Parallel()
	const aws = "table ip aws-cni {\n\tchain nat-prerouting {\n\t\ttype nat hook prerouting priority -90; policy accept;\n\t}\n}\n"
	for text, want := range map[string]string{
		"":  "",
		aws: "",
		aws + "table ip mangle {\n\tchain PREROUTING {\n\t}\n\tchain KUBE-KUBELET-CANARY {\n\t}\n}\n": "chain KUBE-KUBELET-CANARY",
		"table ip6 mangle {\n\tchain KUBE-IPTABLES-HINT {\n\t}\n}\n":                                  "chain KUBE-IPTABLES-HINT",
		"table ip6 kube-proxy {\n\tchain cluster-ips-check {\n\t}\n}\n":                               "table ip6 kube-proxy",
		"table inet mangle {\n\tchain KUBE-KUBELET-CANARY {\n\t}\n}\n":                                "",
		"table inet kube-proxy {\n}\n":                                                                "",
		"table ip mangle {\n}\ntable inet x {\n\tchain KUBE-IPTABLES-HINT {\n\t}\n}\n":                "",
		"table ip nat {\n\tchain KUBE-KUBELET-CANARY {\n\t}\n}\n":                                     "",
		"table ip mangle {\n\tchain KUBE-KUBELET-CANARY-2 {\n\t}\n}\n":                                "",
	} {
		if got := rules.NFTHint(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzNFTHint: a hint names only what the listing contains, and other tables before and
// after it do not change the result.
func FuzzNFTHint(f *testing.F) {
	f.Add("table ip mangle {\n\tchain KUBE-KUBELET-CANARY {\n\t}\n}\n")
	f.Add("table ip6 kube-proxy {\n}\n")
	f.Add("table ip x {\n\tchain KUBE-IPTABLES-HINT {\n\t\ttype filter hook input priority 0; policy drop;\n\t}\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := rules.NFTHint(text)
		if got != "" {
			words := strings.Fields(got)
			if name := words[len(words)-1]; !strings.Contains(text, name) || !slices.Contains([]string{"kube-proxy", "KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"}, name) {
				t.Fatalf("%q of %q", got, text)
			}
		}
		const other = "\ntable ip other {\n\tchain KUBE-KUBELET-CANARY {\n\t}\n}\n"
		if again := rules.NFTHint(other + text + other); again != got {
			t.Fatalf("%q between other tables, %q alone", again, got)
		}
		const hinted = "\ntable ip mangle {\n\tchain KUBE-KUBELET-CANARY {\n\t}\n}\n"
		if rules.NFTHint(text+hinted) == "" {
			t.Fatalf("the hint behind %q is not seen", text)
		}
	})
}

// TestBackendFollower: a hint moves the rules at once; numbers of rules only when two looks agree,
// and not soon after a move.
func TestBackendFollower(t *testing.T) {
	t.Parallel()
	type look struct {
		after  time.Duration
		found  rules.Backend
		hinted bool
		moves  bool
	}
	const nft, legacy, soon = rules.NFTables, rules.IPTables, 30 * time.Second
	for name, looks := range map[string][]look{
		"nothing changes":        {{0, nft, true, false}, {soon, nft, false, false}},
		"a hint":                 {{0, legacy, true, true}, {soon, legacy, true, false}},
		"numbers":                {{0, legacy, false, false}, {soon, legacy, false, true}},
		"numbers, for a moment":  {{0, legacy, false, false}, {soon, nft, false, false}, {2 * soon, legacy, false, false}},
		"a hint after numbers":   {{0, legacy, false, false}, {soon, legacy, true, true}},
		"back, by numbers":       {{0, legacy, true, true}, {soon, nft, false, false}, {2 * soon, nft, false, false}, {10 * time.Minute, nft, false, true}},
		"back, by a hint":        {{0, legacy, true, true}, {soon, nft, true, true}},
		"numbers that alternate": {{0, legacy, false, false}, {1, legacy, false, true}, {2, nft, false, false}, {3, legacy, false, false}, {4, nft, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f rules.BackendFollower
			used, began := nft, time.Now()
			for i, l := range looks {
				now := began.Add(l.after)
				if got := f.Follow(now, used, l.found, l.hinted); got != l.moves {
					t.Errorf("look %d: %v", i, got)
				}
				if l.moves {
					used = l.found
					f.Moved(now)
				}
				if want := l.found != used; f.Undecided(used) != want {
					t.Errorf("look %d: undecided %v", i, !want)
				}
			}
		})
	}
}
