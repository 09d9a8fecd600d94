package introspectserver

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
)

func testView() View {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	busy := ipam.AddressState{Address: netip.MustParseAddr("10.0.0.11"), Sandbox: ipam.Sandbox{Network: "aws-cni", ContainerID: "secret-id", IfName: "eth0"}, Pod: ipam.Pod{Namespace: "shop", Name: "cart"}, AssignedAt: now.Add(-time.Hour)}
	rest := ipam.AddressState{Address: netip.MustParseAddr("10.0.0.12"), AssignedAt: now.Add(-time.Hour), UnassignedAt: now.Add(-time.Second)}
	old := ipam.AddressState{Address: netip.MustParseAddr("10.0.0.13"), AssignedAt: now.Add(-time.Hour), UnassignedAt: now.Add(-time.Minute)}
	cidr := func(addr string, assigned int, records ...ipam.AddressState) ipam.CIDRState {
		return ipam.CIDRState{Prefix: netip.MustParsePrefix(addr), Assigned: assigned, Records: records}
	}
	return View{
		Now: now, Cooldown: 30 * time.Second,
		Book: ipam.Snapshot{
			ENIs: []ipam.ENIState{
				{ENI: ipam.ENI{ID: "eni-1", Primary: true, RouteTable: 254}, CIDRs: []ipam.CIDRState{
					cidr("10.0.0.11/32", 1, busy), cidr("10.0.0.12/32", 0, rest), cidr("10.0.0.13/32", 0, old), cidr("10.0.0.14/32", 0),
					{Prefix: netip.MustParsePrefix("10.0.0.15/32"), Held: true},
					cidr("10.0.0.16/28", 0),
				}},
				{ENI: ipam.ENI{ID: "eni-2", Device: 1, Excluded: true}, CIDRs: []ipam.CIDRState{cidr("10.0.0.40/32", 0)}},
				{ENI: ipam.ENI{ID: "eni-3", Card: 1, Device: 1}, CIDRs: []ipam.CIDRState{cidr("10.0.0.48/28", 0)}},
			},
			Unplaced: []ipam.Assignment{{}},
		},
		Summary: introspect.Summary{
			Version: "v1.0.0", Node: "n1", InstanceID: "i-1", InstanceType: "m5.large", StartedAt: new(now.Add(-2 * time.Hour)),
			Cards: []introspect.CardSummary{{Card: 0, Mode: introspect.ModeSecondaryIP, ENILimit: new(3), SlotsPerENI: new(9)}, {Card: 1, Mode: introspect.ModePrefix, ENILimit: new(1), SlotsPerENI: new(9), AddressLimit: new(100)}},
		},
		Config: []introspect.ConfigRow{{Name: "WARM_IP_TARGET", Declared: new("5"), Effective: "5", Source: "env"}},
	}
}

func TestSummary_CountsFromBook(t *testing.T) {
	t.Parallel()
	s := Summary(testView())
	want := []introspect.CardSummary{
		{Card: 0, Mode: introspect.ModeSecondaryIP, ENIs: new(2), ENILimit: new(3), SlotsPerENI: new(9), AddressLimit: new(27), Total: 4, Assigned: 1, Cooling: new(1), Free: 2, Prefixes: new(0), FreePrefixes: new(0)},
		{Card: 1, Mode: introspect.ModePrefix, ENIs: new(1), ENILimit: new(1), SlotsPerENI: new(9), AddressLimit: new(100), Total: 16, Cooling: new(0), Free: 16, Prefixes: new(1), FreePrefixes: new(1)},
	}
	if diff := cmp.Diff(want, s.Cards); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
	if *s.Unplaced != 1 || *s.CooldownSeconds != 30 || s.Kind != introspect.KindSummary {
		t.Errorf("summary %+v", s)
	}
	v := testView()
	if Summary(v); v.Summary.Cards[0].Total != 0 {
		t.Error("the view was changed")
	}
}

// TestSummary_LatePass: an address whose connections are still to be looked for counts as cooling
// after its cooldown, which upstream's document cannot say.
func TestSummary_LatePass(t *testing.T) {
	t.Parallel()
	v := testView()
	v.Book.ENIs[0].CIDRs[2].Records[0].Tracked = true
	if s := Summary(v); s.Cards[0].Cooling == nil || *s.Cards[0].Cooling != 2 || s.ENIs[0].Cooling != 2 {
		t.Errorf("summary: %+v, %+v", s.Cards[0], s.ENIs[0])
	}
	body, err := json.Marshal(ENIs(v.Book))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := introspect.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	pool.Recount(v.Now, v.Cooldown)
	if got := pool.ENIs[0].CIDRs[2]; got.Cooling != 0 || got.Addresses[0].State != introspect.AddressFree {
		t.Errorf("list: %+v", got)
	}
}

// TestSummary_NullIsNotKnown pins the document of a daemon that knows nothing yet.
func TestSummary_NullIsNotKnown(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(Summary(View{}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"apiVersion":"cnictl/v1alpha1","kind":"NodeSummary","version":"","node":"","instanceId":"","instanceType":"","ipFamily":"","startedAt":null,` +
		`"customNetworking":null,"cordoned":null,"terminating":null,"cards":[],"enis":[],` +
		`"targets":{"warmEni":null,"warmIp":null,"minimumIp":null,"warmPrefix":null,"maxEni":null},"maxPods":null,"trunk":null,"cooldownSeconds":0,` +
		`"waitingAdds":null,"waitingSince":null,"unplaced":0,"operations":null,"backoffs":null,"subnets":null,"lastErrors":null,` +
		`"ec2Calls":null,"adds":null,"dels":null,"configProblems":null}`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
