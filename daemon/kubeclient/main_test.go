package kubeclient

import (
	"testing"

	"cnictl/testenv/kubeapi"
)

func TestMain(m *testing.M) { kubeapi.Main(m) }
