package branch_test

import (
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

//testlayers:uses=cmd/aws-cni,cmd/aws-k8s-agent,cmd/cnictl parallel=2
func TestMain(m *testing.M) { testenv.MainOn(m, "vlan", kubeapi.Service()) }
