// Package trunk_test has the tests of testenv/vpc that need a kernel with 802.1q VLAN.
package trunk_test

import (
	"testing"

	"cnictl/testenv"
)

func TestMain(m *testing.M) { testenv.MainOn(m, "vlan") }
