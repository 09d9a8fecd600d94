package branch_test

import (
	"testing"

	"cnictl/testenv"
)

//testlayers:uses=cmd/aws-cni
func TestMain(m *testing.M) { testenv.MainOn(m, "vlan") }
