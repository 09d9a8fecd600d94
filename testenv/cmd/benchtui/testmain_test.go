package main

import (
	"os"
	"testing"

	"cnictl/testenv"
)

//testlayers:uses=testenv/cmd/benchtui,cmd/cnictl,testenv/cmd/fleetsim
func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }
