package introspectserver

import (
	"testing"

	"cnictl/testenv/rules/leftover"
)

func TestMain(m *testing.M) { leftover.Main(m) }
