package netconf_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/plugin/netconf"
)

const branchRecord = `{"containerID":"abc001","ifname":"eth0","podNamespace":"default","podName":"web-0","vlan":"3","mac":"02:00:00:00:00:03",` +
	`"address":"10.0.0.90","hostLink":"vlan0d7763386da","policyMode":"strict"}`

func TestParseBranchRecord(t *testing.T) {
	t.Parallel()
	got, err := netconf.ParseBranchRecord([]byte(branchRecord))
	want := netconf.BranchRecord{Attachment: netconf.Attachment{ContainerID: "abc001", IfName: "eth0"}, PodNamespace: "default", PodName: "web-0",
		VLAN: 3, MAC: "02:00:00:00:00:03", Address: "10.0.0.90", HostLink: "vlan0d7763386da", PolicyMode: "strict"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"", "{", "[]", "null", "{}", `{"containerID":"a","ifname":"b"}`, `{"containerID":"a","ifname":"b","vlan":"x"}`,
		`{"containerID":"a","ifname":"b","vlan":3}`, `{"containerID":"","ifname":"b","vlan":"3"}`} {
		if got, err := netconf.ParseBranchRecord([]byte(bad)); err == nil {
			t.Errorf("%q gave %+v", bad, got)
		}
	}
}

// FuzzBranchRecord: a record that parses names a sandbox and is valid JSON for other readers;
// an error comes without a record.
func FuzzBranchRecord(f *testing.F) {
	f.Add([]byte(branchRecord))
	f.Add([]byte(`{"containerID":"a","ifname":"b","vlan":"-1","more":[{}]}`))
	f.Add([]byte(`{"vlan":null}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := netconf.ParseBranchRecord(file)
		if err != nil {
			if got != (netconf.BranchRecord{}) {
				t.Fatalf("%+v beside %v", got, err)
			}
			return
		}
		if got.Attachment.ContainerID == "" || got.Attachment.IfName == "" {
			t.Fatalf("no sandbox in %+v", got)
		}
		if !json.Valid(file) {
			t.Fatal("read what is no JSON")
		}
	})
}
