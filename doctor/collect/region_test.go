package collect

import (
	"strings"
	"testing"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// TestRegionOf: no single node decides in which region AWS is read, whichever comes first.
func TestRegionOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		labels   string // of the nodes; - has no instance
		settings string
		want     string
		warning  string // "" for none
	}{
		"all agree":                {"eu-west-1 eu-west-1 eu-west-1", "", "eu-west-1", ""},
		"and the settings too":     {"eu-west-1 eu-west-1", "eu-west-1", "eu-west-1", ""},
		"the settings differ":      {"eu-west-1 eu-west-1", "us-east-1", "eu-west-1", "the AWS settings have us-east-1"},
		"the first one lies":       {"us-east-2 eu-west-1 eu-west-1", "", "eu-west-1", "of 3 nodes are there, others claim to be in us-east-2"},
		"and has the settings":     {"us-east-2 eu-west-1 eu-west-1", "us-east-2", "eu-west-1", "2 of 3 nodes"},
		"one of two lies":          {"us-east-2 eu-west-1", "eu-west-1", "eu-west-1", "the region of the AWS settings"},
		"one of two, no settings":  {"us-east-2 eu-west-1", "", "", "set AWS_REGION"},
		"one node":                 {"us-east-2", "eu-west-1", "eu-west-1", "1 node is in us-east-2 by label"},
		"one node, no settings":    {"us-east-2", "", "", "set AWS_REGION"},
		"one node, same settings":  {"us-east-2", "us-east-2", "us-east-2", ""},
		"no majority":              {"ca-west-1 ca-west-1 sa-east-1 sa-east-1 af-south-1", "", "", "AWS is not read"},
		"no labels":                {"x x", "eu-west-1", "eu-west-1", ""},
		"a label that is no name":  {"eu.evil.example eu.evil.example x", "", "", ""},
		"only nodes with instance": {"-us-east-2 -us-east-2 eu-west-1 eu-west-1", "", "eu-west-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var nodes []fleet.Target
			for _, label := range strings.Fields(tt.labels) {
				region := map[string]string{"topology.kubernetes.io/region": strings.TrimPrefix(label, "-")}
				o := &document.NodeObject{InstanceID: "i-1", Labels: region}
				if strings.HasPrefix(label, "-") {
					o.InstanceID = ""
				}
				nodes = append(nodes, fleet.Target{Object: o})
			}
			got, why := RegionOf(append(nodes, fleet.Target{}), tt.settings)
			if got != tt.want || (why == "") != (tt.warning == "") || !strings.Contains(why, tt.warning) {
				t.Errorf("%q, %q", got, why)
			}
		})
	}
}
