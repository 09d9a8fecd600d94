package main

import (
	"os"
	"testing"

	"cnictl/testenv"
)

//testlayers:uses=testenv/cmd/fleetsim
func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }
