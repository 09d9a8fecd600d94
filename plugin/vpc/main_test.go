package vpc_test

import (
	"testing"

	"cnictl/testenv"
)

//testlayers:uses=cmd/aws-cni,cmd/aws-cni-grpc
func TestMain(m *testing.M) { testenv.Main(m) }
