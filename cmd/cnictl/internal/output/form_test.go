package output

import (
	"errors"
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for form, accepted := range map[string]bool{
		"table": true, "wide": true, "csv": true, "custom-columns": true, "custom-columns=node,free": true, "custom-columns=N:.a": true, "jsonpath={.a}": true,
		"xml": false, "json=x": false, "jsonpath": false, "go-template=": false, "": false,
	} {
		err := Check(&cli.Factory{Name: "cnictl", Globals: cli.Globals{Output: form}})(nil)
		var e *cli.Error
		if accepted != (err == nil) || err != nil && (!errors.As(err, &e) || e.Code != cli.ExitUsage || e.Do != "cnictl help output") {
			t.Errorf("-o %s: %v", form, err)
		}
	}
}
