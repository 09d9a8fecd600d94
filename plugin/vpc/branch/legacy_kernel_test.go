package branch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
	"cnictl/testenv/aws/npa"
	"cnictl/testenv/aws/oldipamd"
	"cnictl/testenv/network/netns"
)

// TestPlugin_OldDaemon: branch pods with upstream's daemon.
func TestPlugin_OldDaemon(t *testing.T) {
	testenv.RequireKernel(t, "veth", "vlan")
	const mac, address = "02:00:00:00:00:03", "10.0.0.90"
	for mode, host := range map[string]string{"strict": "vlan0d7763386da", "standard": "eni0d7763386da"} {
		for _, policy := range []string{"", "standard"} {
			t.Run(strings.TrimSpace(mode+" "+policy), func(t *testing.T) {
				node, pod := netns.New(t), netns.New(t)
				parent := trunk(t, node)
				const dir = "/var/run/aws-node"
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(recordsDir) })
				d, err := oldipamd.Start(oldipamd.Options{
					Socket: filepath.Join(dir, "ipamd.sock"), Version: "v1.23.1", NetworkPolicyMode: policy, PodENI: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(d.Close)
				d.SetPod("default", "web-0", oldipamd.BranchPod(address, "uid-web-0", oldipamd.Branch{VLAN: 3, MAC: mac, Gateway: "10.0.0.1", ParentIfIndex: parent}))
				agent, err := npa.Start(npa.Options{Socket: filepath.Join(dir, "npa.sock"), Netns: node})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(agent.Close)
				box := newSandbox(t, node, "abc001", "web-0", pod.Path)
				result := resultOf(host, address, "3", pod.Path)
				for _, way := range []string{"record", "previous result", "the daemon's word"} {
					box.expect(t, "ADD", inMode(box.stdin(), mode), 0, result)
					stdin := inMode(box.stdin(`,"prevResult":`+result), mode)
					switch way { // upstream leaves no record
					case "previous result":
						err = os.RemoveAll(recordsDir)
					case "the daemon's word":
						err, stdin = os.RemoveAll(recordsDir), inMode(box.stdin(), mode)
					}
					if err != nil {
						t.Fatal(err)
					}
					if way != "record" {
						box.expect(t, "CHECK", inMode(box.stdin(`,"prevResult":`+result), mode), 0, "")
					}
					for range 2 {
						box.expect(t, "DEL", stdin, 0, "")
						if diff := cmp.Diff("", ipRule(t, node)); diff != "" || slices.Contains(linkNames(t, node), netnames.VLANDevice(3)) {
							t.Errorf("%s: rules %s, links %q", way, diff, linkNames(t, node))
						}
					}
				}
				want := []bool{}
				for _, c := range agent.Calls() {
					want = append(want, c.Delete)
				}
				if on := policy != ""; on != slices.Contains(want, true) || on != slices.Contains(want, false) {
					t.Errorf("calls of the agent: %+v", agent.Calls())
				}
			})
		}
	}
}
