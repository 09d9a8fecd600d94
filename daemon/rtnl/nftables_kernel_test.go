package rtnl

import (
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

func TestHasNFTables(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "nft")
	err := netns.New(t).Do(func() error {
		there, err := HasNFTables()
		if !there {
			t.Error("nft works, and the kernel is said to have no nf_tables")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
