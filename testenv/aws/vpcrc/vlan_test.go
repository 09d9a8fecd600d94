package vpcrc

import "testing"

func TestVLANs_LowestFirst(t *testing.T) {
	t.Parallel()
	var v vlans
	for want := 1; want <= 120; want++ {
		if got, err := v.take(); err != nil || got != want {
			t.Fatalf("took %d, %v; want %d", got, err, want)
		}
	}
	if _, err := v.take(); err == nil || err.Error() != "failed to find free vlan id in the available 121 ids" {
		t.Errorf("the 121st: %v", err)
	}
	v.free(77)
	v.free(3)
	for _, want := range []int{3, 77} {
		if got, err := v.take(); err != nil || got != want {
			t.Errorf("took %d, %v; want %d", got, err, want)
		}
	}
}
