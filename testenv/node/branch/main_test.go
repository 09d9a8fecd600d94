package branch_test

import (
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/kubeapi"
)

func TestMain(m *testing.M) { testenv.MainOn(m, "vlan", kubeapi.Service()) }
