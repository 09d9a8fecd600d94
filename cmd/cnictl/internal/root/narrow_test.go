package root

import (
	"regexp"
	"strings"
	"testing"
)

// TestNarrow_NamesAreWhole: at 80 columns, tables truncate no name and no ID. They drop the domain
// that all nodes share, and columns.
func TestNarrow_NamesAreWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cut := regexp.MustCompile(`(?m)(?:^|[^/a-z])(ip-|eni-|subnet-|i-0)[0-9a-z.-]*…`)
	for _, command := range []string{"nodes", "enis", "ips", "subnets", "trunks", "top"} {
		stdout, stderr, code := w.run(t, call{
			args: command + " --allow-partial --replay ../../../../docs/tour.cnirec", env: map[string]string{"CNICTL_FORCE_TTY": "80", "NO_COLOR": "1"},
		})
		if code != 0 || !strings.Contains(stdout, "ip-10-0-") && !strings.Contains(stdout, "subnet-") {
			t.Errorf("%s: exit %d\n%s%s", command, code, stdout, stderr)
		}
		if found := cut.FindString(stdout); found != "" {
			t.Errorf("%s: %s is cut\n%.1500s", command, found, stdout)
		}
	}
	piped, _, _ := w.run(t, call{args: "enis --replay ../../../../docs/tour.cnirec"})
	if !strings.Contains(piped, ".compute.internal ") {
		t.Errorf("a pipe gets short names:\n%.500s", piped)
	}
}
