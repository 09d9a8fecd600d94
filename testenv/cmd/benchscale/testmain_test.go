package main

import (
	"os"
	"testing"

	"cnictl/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }
