package kube

import (
	"testing"

	"cnictl/testenv/kube/kubeapi"
)

func TestMain(m *testing.M) { kubeapi.Main(m) }
