package vpcrc

import (
	"errors"
	"testing"

	"cnictl/capacity/limits"
)

func TestTrunkDevice(t *testing.T) {
	t.Parallel()
	one := limits.Instance{Cards: []limits.Card{{Index: 0, MaxENIs: 3}}}
	two := limits.Instance{Cards: []limits.Card{{Index: 0, MaxENIs: 4}, {Index: 1, MaxENIs: 8}}}
	for _, row := range []struct {
		name  string
		l     limits.Instance
		taken []int
		want  int
		full  bool
	}{
		{"the highest", one, []int{0}, 2, false},
		{"below a taken one", one, []int{0, 2}, 1, false},
		{"full", one, []int{0, 1, 2}, 0, true},
		{"of the default card", two, []int{0}, 3, false},
	} {
		got, err := trunkDevice(row.l, row.taken)
		if got != row.want || errors.Is(err, errNoDeviceIndex) != row.full {
			t.Errorf("%s: %d, %v", row.name, got, err)
		}
	}
}

func TestTrunkFailure_NamesThePolicyForUnauthorizedAlone(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"UnauthorizedOperation":             "Failed to create trunk interface: Error Code: UnauthorizedOperation: Please verify the cluster IAM role has AmazonEKSVPCResourceController policy",
		"InsufficientFreeAddressesInSubnet": "Failed to create trunk interface: Error Code: InsufficientFreeAddressesInSubnet",
	} {
		if got := trunkFailure(code); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
