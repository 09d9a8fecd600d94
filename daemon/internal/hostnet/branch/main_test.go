package branch_test

import (
	"testing"

	"cnictl/testenv"
)

func TestMain(m *testing.M) { testenv.MainOn(m, "vlan") }
