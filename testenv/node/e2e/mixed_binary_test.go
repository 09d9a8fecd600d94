package e2e_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"cnictl/daemon/api/cnirpc"
	"cnictl/testenv/node"
)

// metadataOf returns the daemon's metadata for a pod, from the pod's result.
func metadataOf(t *testing.T, p *node.Pod) *cnirpc.IPAllocationMetadata {
	t.Helper()
	var result struct {
		Interfaces []struct{ MAC, Sandbox string }
	}
	if err := json.Unmarshal(p.Result, &result); err != nil || len(result.Interfaces) != 3 {
		t.Fatalf("%v: %s", err, p.Result)
	}
	table, err := strconv.ParseInt(result.Interfaces[1].MAC, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	device, err := strconv.ParseInt(result.Interfaces[2].Sandbox, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &cnirpc.IPAllocationMetadata{IPv4Addr: p.IP.String(), DeviceNumber: int32(device), RouteTableId: int32(table)}
}
