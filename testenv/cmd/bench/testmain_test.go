package main

import (
	"os"
	"testing"

	"cnictl/testenv"
)

//testlayers:uses=cmd/...,testenv/cmd/bench,testenv/cmd/floor,testenv/cmd/fleetsim
func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }
