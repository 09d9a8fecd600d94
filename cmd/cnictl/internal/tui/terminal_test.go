package tui

import (
	"strings"
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
)

// TestNeedsTerminal: the suggested command uses the name by which the tool was called.
func TestNeedsTerminal(t *testing.T) {
	t.Parallel()
	if got := needsTerminal(&cli.Factory{Name: "kubectl cni"}).Error(); !strings.Contains(got, `tui needs a terminal; use "kubectl cni status -o json" instead`) {
		t.Error(got)
	}
}
