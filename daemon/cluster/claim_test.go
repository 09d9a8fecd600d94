package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"cnictl/daemon/cluster"
)

// announce returns a pod of node worker with a branch ENI.
func announce(namespace, name, annotation string) cluster.Pod {
	return cluster.Pod{Namespace: namespace, Name: name, UID: "uid-" + name, NodeName: "worker", BranchENI: true, PodENI: annotation}
}

// entry returns an element of the annotation. The arguments are JSON.
func entry(eni, mac, address, vlan string) string {
	return fmt.Sprintf(`{"eniId":%s,"ifAddress":%s,"privateIp":%s,"ipv6Addr":"","vlanId":%s,"subnetCidr":"10.1.0.0/20"}`,
		eni, mac, address, vlan)
}

func TestClaims_Rival(t *testing.T) {
	t.Parallel()
	const (
		eni, mac, address, vlan     = `"eni-00000000000000001"`, `"06:25:70:70:b1:01"`, `"10.1.0.21"`, `7`
		eni2, mac2, address2, vlan2 = `"eni-00000000000000002"`, `"06:25:70:70:b1:02"`, `"10.1.0.22"`, `8`
		unlike                      = "" // no rival
		all                         = "eni-00000000000000001, MAC 06:25:70:70:b1:01, VLAN 7, address 10.1.0.21"
	)
	theirs := entry(eni2, mac2, address2, vlan2)
	own := announce("evil", "mallory", "["+entry(eni, mac, address, vlan)+"]")
	list := func(entries ...string) string { return "[" + strings.Join(entries, ",") + "]" }
	for name, row := range map[string]struct {
		annotation string
		change     func(*cluster.Pod)
		want       string
	}{
		"another branch ENI":              {list(theirs), nil, unlike},
		"all of it":                       {own.PodENI, nil, all},
		"the ENI":                         {list(entry(eni, mac2, address2, vlan2)), nil, "eni-00000000000000001"},
		"the MAC":                         {list(entry(eni2, mac, address2, vlan2)), nil, "MAC 06:25:70:70:b1:01"},
		"the MAC in capitals":             {list(entry(eni2, strings.ToUpper(mac), address2, vlan2)), nil, "MAC 06:25:70:70:b1:01"},
		"the VLAN":                        {list(entry(eni2, mac2, address2, vlan)), nil, "VLAN 7"},
		"the address":                     {list(entry(eni2, mac2, address, vlan2)), nil, "address 10.1.0.21"},
		"the VLAN alone":                  {`[{"vlanId":7}]`, nil, "VLAN 7"},
		"the VLAN, other spelling":        {`[{"VLANID":7}]`, nil, "VLAN 7"},
		"the VLAN, the last of two":       {`[{"vlanId":8,"vlanID":7}]`, nil, "VLAN 7"},
		"the VLAN, the first of two":      {`[{"vlanId":7,"vlanID":8}]`, nil, unlike},
		"the VLAN with leading zeros":     {`[{"vlanId":007}]`, nil, unlike}, // no JSON
		"the VLAN as text":                {`[{"vlanId":"7"}]`, nil, unlike}, // refused by its ADD
		"a MAC without leading zeros":     {`[{"ifAddress":"6:25:70:70:b1:1"}]`, nil, unlike},
		"the second entry":                {list(theirs, entry(eni, mac2, address2, `9`)), nil, "eni-00000000000000001"},
		"an entry behind others":          {list(theirs, `null`, `7`, `[]`, `{"vlanId":{}}`, `{"vlanId":7}`), nil, "VLAN 7"},
		"nothing that can be read":        {`[{"eniId":`, nil, unlike},
		"no entry":                        {`[]`, nil, unlike},
		"empty members":                   {`[{"eniId":"","ifAddress":"","privateIp":"","vlanId":0}]`, nil, unlike},
		"more than can be":                {list(strings.Split(strings.Repeat("{},", 4000)+`{"vlanId":7}`, ",")...), nil, unlike},
		"too long":                        {strings.Repeat(" ", 64<<10) + `[{"vlanId":7}]`, nil, unlike},
		"of a pod that is deleted":        {own.PodENI, func(p *cluster.Pod) { p.Ended = true }, all},
		"of a pod that ended":             {own.PodENI, func(p *cluster.Pod) { p.Ended, p.Finished = true, true }, unlike},
		"of a pod of another node":        {own.PodENI, func(p *cluster.Pod) { p.NodeName = "other" }, unlike},
		"of a pod without the limit":      {own.PodENI, func(p *cluster.Pod) { p.BranchENI = false }, unlike},
		"of a pod of the host":            {own.PodENI, func(p *cluster.Pod) { p.HostNetwork = true }, unlike},
		"of the same pod":                 {own.PodENI, func(p *cluster.Pod) { p.UID = own.UID }, unlike},
		"of a predecessor of that name":   {own.PodENI, func(p *cluster.Pod) { p.Namespace, p.Name = own.Namespace, own.Name }, unlike},
		"of the pod's namesake elsewhere": {own.PodENI, func(p *cluster.Pod) { p.Name = own.Name }, all},
	} {
		other := announce("shop", "db-0", row.annotation)
		if row.change != nil {
			row.change(&other)
		}
		branch, err := cluster.ParseBranch(own.PodENI, false)
		if err != nil {
			t.Fatal(err)
		}
		pods := []cluster.Pod{announce("shop", "web", list(theirs)), own, other}
		rival, shared, found := cluster.ClaimsOf(pods, cluster.Claims{}).Rival(own, branch)
		if shared != row.want || found != (row.want != unlike) || found && rival != other {
			t.Errorf("%s: %v of %s/%s %q, want %q", name, found, rival.Namespace, rival.Name, shared, row.want)
		}
	}
}

// TestClaims_Both: of two pods that name each other's branch ENI neither gets it, in whatever
// order they appear, and a third pod gets its own.
func TestClaims_Both(t *testing.T) {
	t.Parallel()
	a := announce("a", "a", `[{"eniId":"eni-0000000a","vlanId":1},{"vlanId":2}]`)
	b := announce("b", "b", `[{"eniId":"eni-0000000b","vlanId":2},{"vlanId":1}]`)
	c := announce("c", "c", `[{"eniId":"eni-0000000c","vlanId":3}]`)
	for _, all := range [][]cluster.Pod{{a, b, c}, {c, b, a}, {b, c, a}} {
		claims := cluster.ClaimsOf(all, cluster.Claims{})
		for _, row := range []struct {
			of, rival cluster.Pod
			vlan      int
		}{{a, b, 1}, {b, a, 2}, {c, cluster.Pod{}, 3}} {
			if rival, _, _ := claims.Rival(row.of, cluster.Branch{VLAN: row.vlan}); rival != row.rival {
				t.Errorf("%s: the rival is %q, want %q", row.of.Name, rival.Name, row.rival.Name)
			}
		}
	}
}

// TestClaims_First: the same rival is named each time.
func TestClaims_First(t *testing.T) {
	t.Parallel()
	var all []cluster.Pod
	for _, name := range []string{"c", "a", "d", "b"} {
		all = append(all, announce("shop", name, `[{"vlanId":7}]`))
	}
	if rival, _, _ := cluster.ClaimsOf(all, cluster.Claims{}).Rival(announce("evil", "m", ""), cluster.Branch{VLAN: 7}); rival.Name != "a" {
		t.Errorf("the rival is %q", rival.Name)
	}
}

// TestClaims_ReadOnce: an annotation is read again only when it changes.
func TestClaims_ReadOnce(t *testing.T) {
	long := "[" + strings.Repeat(`{"vlanId":8},`, 1000) + `{"vlanId":9}]`
	all := []cluster.Pod{announce("shop", "a", `[{"vlanId":7}]`), announce("shop", "b", long)}
	last := cluster.ClaimsOf(all, cluster.Claims{})
	if n := testing.AllocsPerRun(10, func() { last = cluster.ClaimsOf(all, last) }); n > 20 {
		t.Errorf("%v allocations without a change", n)
	}
	all[0].PodENI = `[{"vlanId":10}]`
	last = cluster.ClaimsOf(all, last)
	for vlan, want := range map[int]bool{7: false, 8: true, 9: false, 10: true} {
		if _, _, found := last.Rival(announce("evil", "m", ""), cluster.Branch{VLAN: vlan}); found != want {
			t.Errorf("VLAN %d: %v", vlan, found)
		}
	}
}

// FuzzClaims: whatever an ADD takes from an annotation, the pod that has the annotation is found
// to have it.
func FuzzClaims(f *testing.F) {
	f.Add(written, false)
	f.Add(`[{"vlanid":7,"VLANID":8,"ifAddress":"06:25:70:70:B1:69","privateIp":"10.1.0.9","subnetCidr":"10.1.0.0/20"}]`, false)
	f.Add(`[{"vlanId":7,"ifAddress":"06:25:70:70:b1:69","ipv6Addr":"2600:1f14::5","subnetV6Cidr":"2600:1f14::/64"}]`, true)
	f.Fuzz(func(t *testing.T, annotation string, ipv6 bool) {
		branch, err := cluster.ParseBranch(annotation, ipv6)
		if err != nil {
			return
		}
		claims := cluster.ClaimsOf([]cluster.Pod{announce("shop", "db-0", annotation)}, cluster.Claims{})
		for _, part := range []cluster.Branch{{ENI: branch.ENI}, {MAC: branch.MAC}, {VLAN: branch.VLAN}, {Address: branch.Address}} {
			if part == (cluster.Branch{}) {
				continue // no usable ENI ID
			}
			if _, _, found := claims.Rival(announce("evil", "m", ""), part); !found {
				t.Errorf("%q: %+v is not found", annotation, part)
			}
		}
	})
}
