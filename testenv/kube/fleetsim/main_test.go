package fleetsim

import (
	"testing"

	"cnictl/testenv/rules/leftover"
)

//testlayers:uses=cmd/cnictl,tools/kube
func TestMain(m *testing.M) { leftover.Main(m) }
