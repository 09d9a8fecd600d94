package fakecloudwatch_test

import (
	"testing"

	"cnictl/testenv/rules/leftover"
)

func TestMain(m *testing.M) { leftover.Main(m) }
