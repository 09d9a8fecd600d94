package app

import (
	"context"
	"errors"
	"testing"

	"cnictl/tui/pages/pagetest"
)

func TestContexts(t *testing.T) {
	t.Parallel()
	var tried []string
	open := func() *bench {
		b := newBench(t, pagetest.NewSource(5, 2), func(o *Options) {
			o.Contexts, o.Context = []string{"prod-eu", "prod-us", "gone"}, "prod-eu"
			o.Connect = func(_ context.Context, name string) error {
				if tried = append(tried, name); name == "gone" {
					return errors.New("could not reach gone: connection refused")
				}
				return nil
			}
		})
		b.resize(100, 30)
		return b
	}
	b := open()
	b.press(":")
	b.typed("ctx")
	b.press("enter")
	b.sees(t, "ctx prod-eu", "current context", "ctx prod-us", "ctx gone")
	b.typed("prod-e")
	b.press("tab", "enter")
	b.sees(t, "already on context prod-eu")
	b.press(":")
	b.typed("ctx gone")
	b.press("enter")
	b.sees(t, "still on prod-eu: could not reach gone: connection refused")
	if len(tried) != 1 || b.quits > 0 || b.contexts.switched {
		t.Fatalf("tried %v, %d quits", tried, b.quits)
	}
	b.press(":")
	b.typed("ctx prod-us")
	b.press("enter")
	if len(tried) != 2 || tried[1] != "prod-us" || b.quits != 1 || !b.contexts.switched {
		t.Errorf("tried %v, %d quits, switched %v", tried, b.quits, b.contexts.switched)
	}

	none := newBench(t, pagetest.NewSource(5, 2), nil)
	none.resize(100, 30)
	none.press(":")
	none.typed("ctx")
	none.press("enter")
	none.sees(t, "no contexts: these nodes do not come from a kubeconfig")
}
