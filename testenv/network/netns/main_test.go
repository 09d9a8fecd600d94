package netns_test

import (
	"testing"

	"cnictl/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
