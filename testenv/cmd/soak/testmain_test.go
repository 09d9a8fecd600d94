package main

import (
	"os"
	"testing"

	"cnictl/testenv"
)

//testlayers:uses=testenv/cmd/soak,cmd/...,deploy/chart,deploy/images,testenv/cmd/pause,testenv/cmd/podprobe,tools/helm,tools/reference,tools/release
func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }
