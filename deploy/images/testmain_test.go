package images_test

import (
	"os"
	"testing"

	"cnictl/testenv"
)

//testlayers:uses=cmd/...,deploy/images,tools/reference,tools/release
func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }
