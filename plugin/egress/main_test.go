package egress_test

import (
	"testing"

	"cnictl/testenv"
)

//testlayers:uses=cmd/aws-cni,cmd/egress-cni,tools/reference
func TestMain(m *testing.M) { testenv.Main(m) }
