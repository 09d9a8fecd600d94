package branch_test

import (
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/kubeapi"
)

//testlayers: parallel=2

func TestMain(m *testing.M) { testenv.MainOn(m, "vlan", kubeapi.Service()) }
