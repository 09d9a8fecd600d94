package reading

import (
	"testing"

	"cnictl/daemon/api/netnames"
	"cnictl/doctor/evidence"
)

// TestRelate: pods known from any source name their veths, with any prefix, and the routes to them.
func TestRelate(t *testing.T) {
	t.Parallel()
	pod := evidence.Pod("default/web")
	veth, branch := netnames.HostVeth("eni", "default", "web", 0), netnames.HostVeth("vlan", "default", "db", 0)
	r := evidence.Unread(evidence.Reading{}.At, evidence.MissingNotAsked)
	r.Links = evidence.Read([]evidence.Link{
		{Name: "ens5", Kind: "device", MAC: "02:00:00:00:00:01"}, {Name: veth, Kind: "veth"}, {Name: branch, Kind: "veth"}, {Name: "eni00000000000", Kind: "veth"}, {Name: "x", Kind: "veth"},
	})
	r.Routes = evidence.Read([]evidence.Route{{To: "10.0.0.9/32", Dev: veth}, {To: "default", Dev: "ens5"}})
	r.IMDS = evidence.Read(evidence.IMDS{ENIs: []evidence.IMDSInterface{{ID: "eni-a", MAC: "02:00:00:00:00:01"}}})
	r.ENIs = evidence.Read([]evidence.ENI{{Prefixes: []evidence.Prefix{{IPs: []evidence.Address{{Pod: &pod}, {}}}}}})
	r.Checkpoint = evidence.Read(evidence.Checkpoint{Allocations: []evidence.Allocation{{Pod: "default/db"}, {Pod: "no slash"}}})
	Relate(r)
	links := r.Links.Content
	if links[0].ENI != "eni-a" || links[1].Pod != pod || links[2].Pod != "default/db" || links[3].Pod != "" || links[4].Pod != "" {
		t.Errorf("links: %+v", links)
	}
	if routes := r.Routes.Content; routes[0].Pod != pod || routes[0].Dev != "" || routes[1].Dev != "ens5" {
		t.Errorf("routes: %+v", routes)
	}
	Relate(evidence.Unread(r.At, "x")) // nothing to name
}
