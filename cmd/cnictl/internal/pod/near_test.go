package pod

import (
	"slices"
	"testing"

	"cnictl/daemon/api/introspect"
)

func TestNear(t *testing.T) {
	t.Parallel()
	known := []introspect.PodRef{{Namespace: "shop", Name: "cart-7d9f-1"}, {Namespace: "dev", Name: "cart-7d9f-1"}, {Namespace: "shop", Name: "cart-7d9f-2"}, {Namespace: "shop", Name: "db-0"}, {Namespace: "shop", Name: "cart-7d9f-1"}}
	for _, row := range []struct {
		namespace, name string
		want            []string
	}{
		{"default", "cart-7d9f-1", []string{"dev/cart-7d9f-1", "shop/cart-7d9f-1"}},
		{"shop", "cart", []string{"shop/cart-7d9f-1", "shop/cart-7d9f-2"}},
		{"shop", "bd-0", []string{"shop/db-0"}},
		{"dev", "db", nil},
		{"shop", "other", nil},
	} {
		if got := near(introspect.PodRef{Namespace: row.namespace, Name: row.name}, known); !slices.Equal(got, row.want) {
			t.Errorf("%s/%s: %q, want %q", row.namespace, row.name, got, row.want)
		}
	}
}
