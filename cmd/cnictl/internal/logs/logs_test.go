package logs

import (
	"errors"
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
)

func TestNotNodes(t *testing.T) {
	t.Parallel()
	f := &cli.Factory{Name: "cnictl"}
	if err := (&Options{Names: []string{"node/a", "b"}}).notNodes(f); err != nil {
		t.Error(err)
	}
	var e *cli.Error
	if err := (&Options{Names: []string{"b", "pod/shop/x"}}).notNodes(f); !errors.As(err, &e) || e.Code != cli.ExitNotFound || e.Do != "cnictl logs --pod shop/x" {
		t.Errorf("%+v", e)
	}
}
