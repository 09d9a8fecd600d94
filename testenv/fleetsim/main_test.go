package fleetsim

import (
	"testing"

	"cnictl/testenv/leftover"
)

func TestMain(m *testing.M) { leftover.Main(m) }
