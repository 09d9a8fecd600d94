package cluster_test

import (
	"testing"

	"cnictl/testenv"
)

//testlayers:uses=cmd/...,deploy/chart,deploy/images,testenv/cmd/pause,testenv/cmd/podprobe,tools/helm,tools/reference,tools/release
func TestMain(m *testing.M) { testenv.Main(m, endShared) }
